import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  CreateSessionRequestSchema,
  DestroySessionRequestSchema,
  type Thumbnail,
  ThumbnailSchema,
  WatchThumbnailsRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway();
  await gateway.running.worker({
    slots: 20,
    handlers: {
      watchThumbnails: async function* ({ signal }, { context }) {
        yield create(ThumbnailSchema, { sessionId: context?.sessionId ?? "", contentType: "image/jpeg" });
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    },
  });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

test("streams the pictures of several sessions, and ends with the last of them", async () => {
  const { sessions } = gateway.running;
  const call = await gateway.running.caller();
  const begin = async () => (await sessions.create(call(), create(CreateSessionRequestSchema))).id;
  const sessionId = [await begin(), await begin()];
  const seen: Thumbnail[] = [];
  const follow = async () => {
    const pictures = sessions.watchThumbnails(call(), create(WatchThumbnailsRequestSchema, { sessionId }));
    for await (const picture of pictures) seen.push(picture);
  };
  const following = follow();
  await expect.poll(() => seen.map((each) => each.sessionId).sort(), { timeout: 15_000 }).toEqual(sessionId.sort());
  for (const id of sessionId) await sessions.destroy(call(), create(DestroySessionRequestSchema, { id }));
  await following;
  // Ended sessions are skipped.
  await follow();
  expect(seen).toHaveLength(2);
});

test("refuses sessions of other accounts, none, and more than 20", async () => {
  const rest = gateway.as(await gateway.addAccount());
  const { id } = (await rest("/v1/sessions", {})).body;
  const other = gateway.as(await gateway.addAccount());
  expect((await other(`/v1/thumbnails?session_id=${id}`)).status).toBe(404);
  const many = Array.from({ length: 21 }, (_, index) => `session_id=ses_${index}`).join("&");
  expect((await rest(`/v1/thumbnails?${many}`)).status).toBe(400);
  expect((await rest("/v1/thumbnails")).status).toBe(400);
});
