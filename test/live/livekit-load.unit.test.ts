import { RoomServiceClient } from "livekit-server-sdk";
import { expect, test, vi } from "vitest";
import { createParticipants } from "../../src/sessions/media/livekit.ts";

vi.mock("livekit-server-sdk", { spy: true });

test("the LiveKit client is loaded again after a failure", async () => {
  const participant = createParticipants({ url: "ws://127.0.0.1:9", key: "key", secret: "secret" })("id", "viewer");
  vi.mocked(RoomServiceClient).mockThrowOnce(new Error("failed to load"));
  await expect(participant.admit()).rejects.toThrow("failed to load");
  await expect(participant.admit()).rejects.toMatchObject({ slug: "feature-unavailable" });
});
