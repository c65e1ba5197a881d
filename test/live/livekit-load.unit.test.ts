import { createServer } from "node:http";
import { RoomServiceClient } from "livekit-server-sdk";
import { expect, test, vi } from "vitest";
import { createParticipants } from "../../src/sessions/media/livekit.ts";
import { listen } from "../webhooks/receiver.ts";

vi.mock("livekit-server-sdk", { spy: true });

test("the LiveKit client is loaded again after a failure", async () => {
  const participant = createParticipants({ url: "ws://127.0.0.1:9", key: "key", secret: "secret" })("id", "viewer");
  vi.mocked(RoomServiceClient).mockThrowOnce(new Error("failed to load"));
  await expect(participant.admit()).rejects.toThrow("failed to load");
  await expect(participant.admit()).rejects.toMatchObject({ slug: "feature-unavailable" });
});

test("a viewer can join for a minute, and a worker for ten", async () => {
  const port = await listen(
    createServer((_, response) => response.setHeader("content-type", "application/json").end("{}")),
  );
  const participants = createParticipants({ url: `ws://127.0.0.1:${port}`, key: "key", secret: "secret" });
  const { token, publishToken, joinsWithin } = await participants("id", "viewer").admit();
  const lifetime = (jwt: string) => {
    const { exp, nbf } = JSON.parse(Buffer.from(jwt.split(".")[1] ?? "", "base64url").toString());
    return exp - nbf;
  };
  expect([lifetime(token), lifetime(publishToken), joinsWithin]).toEqual([60, 600, 60_000]);
});
