import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { EventService } from "../../src/gen/pilothouse/v1/event_pb.ts";
import type { Rest } from "../support/rest.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

let gateway: TestGateway;
/** Key of a new account for each test. */
let key: string;
let rest: Rest;

beforeAll(async () => {
  gateway = await startTestGateway();
  await gateway.running.worker({ slots: 20 });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());
beforeEach(async () => {
  key = await gateway.addAccount();
  rest = gateway.as(key);
});

interface Shown {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const end = (path: string) => rest(path, undefined, { method: "DELETE" });

/** Causes `api_key.revoked`. Returns the key's ID. */
async function revokeKey(): Promise<string> {
  const { id } = (await rest("/v1/api-keys", { name: "CI" })).body;
  await end(`/v1/api-keys/${id}`);
  return id;
}

/** Causes `session.created`, `session.live` and `session.completed`. Returns the session's ID. */
async function endSession(): Promise<string> {
  const { id } = (await rest("/v1/sessions", {})).body;
  await end(`/v1/sessions/${id}`);
  return id;
}

/** Waits until the list has `count` events, and returns the events. */
async function list(count: number, query = ""): Promise<Shown[]> {
  await expect.poll(async () => (await rest(`/v1/events?${query}`)).body.data, { timeout: 10_000 }).toHaveLength(count);
  return (await rest(`/v1/events?${query}`)).body.data;
}

const stream = (headers: Record<string, string> = {}, signal?: AbortSignal) =>
  fetch(`${gateway.url}/v1/events/stream`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
    ...(signal && { signal }),
  });

/** Follows the account's events over REST. */
async function follow(
  headers: Record<string, string> = {},
): Promise<{ startId: string | undefined; next(): Promise<Shown & { sse: string }> }> {
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const { body } = await stream(headers, over.signal);
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const isComment = (frame: string): boolean => frame.startsWith(":");
  const nextFrame = async (): Promise<string> => {
    for (;;) {
      const at = text.indexOf("\n\n");
      if (at >= 0) {
        const frame = text.slice(0, at);
        text = text.slice(at + 2);
        return frame;
      }
      const { value, done } = (await reader?.read()) ?? { done: true };
      if (done) throw new Error("the stream has ended");
      text += value ?? "";
    }
  };
  // The gateway listens for events before it sends this comment.
  const opening = await nextFrame();
  expect(opening).toMatch(/^: open(\nid: evt_[0-9a-z]{26})?$/);
  return {
    startId: opening.split("id: ")[1],
    async next() {
      let sse = await nextFrame();
      while (isComment(sse)) sse = await nextFrame();
      return { ...JSON.parse(sse.split("\ndata: ")[1] ?? ""), sse };
    },
  };
}

test("lists only the events that endpoints receive, newest first", async () => {
  const session = await endSession();
  const revoked = await revokeKey();
  const events = await list(4);
  expect(events).toEqual([
    {
      id: expect.stringMatching(/^evt_/),
      type: "api_key.revoked",
      created_at: expect.stringMatching(/Z$/),
      data: expect.objectContaining({ api_key_id: revoked, name: "CI" }),
    },
    {
      id: expect.stringMatching(/^evt_/),
      type: "session.completed",
      created_at: expect.stringMatching(/Z$/),
      data: { session_id: session, duration_ms: expect.any(Number), ended_reason: "destroyed" },
    },
    expect.objectContaining({ type: "session.live", data: { session_id: session } }),
    expect.objectContaining({ type: "session.created", data: { session_id: session } }),
  ]);
  rest = gateway.as(await gateway.addAccount());
  expect((await rest("/v1/events")).body.data).toEqual([]);
});

test("filters the list by type and by subject, in pages", async () => {
  const revoked = [await revokeKey(), await revokeKey(), await revokeKey()].reverse();
  const session = await endSession();
  expect((await list(3, "type=api_key.revoked")).map(({ data }) => data.api_key_id)).toEqual(revoked);
  const ofSession = await list(3, `subject_id=${session}`);
  expect(ofSession.map(({ type }) => type)).toEqual(["session.completed", "session.live", "session.created"]);
  expect(await list(0, `subject_id=${session}&type=api_key.revoked`)).toEqual([]);
  const first = (await rest("/v1/events?limit=3")).body;
  const second = (await rest(`/v1/events?limit=3&cursor=${first.next_cursor}`)).body;
  expect([...first.data, ...second.data]).toEqual(await list(6));
  expect([first.has_more, second.has_more, second.next_cursor]).toEqual([true, false, null]);
});

test.each(["session.control_changed", "session.renamed", "test.ping"])(
  "returns no events of the type %s",
  async (type) => {
    const { status, body } = await rest(`/v1/events?type=${type}`);
    expect(status).toBe(400);
    expect(body.errors).toEqual([
      { field: "type", message: expect.stringMatching(/^must be one of .*session.failed/) },
    ]);
  },
);

test("requires the scope webhooks:read", async () => {
  key = await gateway.addAccount({ scopes: ["sessions:read", "webhooks:write"] });
  rest = gateway.as(key);
  expect((await rest("/v1/events")).status).toBe(403);
  expect((await stream()).status).toBe(403);
});

test("streams the account's events and resumes after Last-Event-ID", async () => {
  await revokeKey();
  const [before] = await list(1);
  const following = await follow();
  const session = await endSession();
  const [created, live, completed] = [await following.next(), await following.next(), await following.next()];
  expect([created, live]).toMatchObject([
    { type: "session.created", data: { session_id: session } },
    { type: "session.live", data: { session_id: session } },
  ]);
  expect(completed).toMatchObject({ type: "session.completed", data: { session_id: session } });
  expect(completed.sse).toMatch(`id: ${completed.id}\nevent: session.completed\n`);
  const revoked = await revokeKey();
  expect((await following.next()).data).toMatchObject({ api_key_id: revoked });

  const resumed = await follow({ "last-event-id": before?.id ?? "" });
  const missed = [await resumed.next(), await resumed.next(), await resumed.next(), await resumed.next()];
  expect(missed.map(({ id }) => id).slice(0, 3)).toEqual([created.id, live.id, completed.id]);
  expect(missed[3]?.data.api_key_id).toBe(revoked);
});

test("the first frame of a stream has the id of the last event, and resuming after that event loses none", async () => {
  await revokeKey();
  const [before] = await list(1);
  const { startId } = await follow();
  expect(startId).toBe(before?.id);
  const revoked = await revokeKey();
  const resumed = await follow({ "last-event-id": startId ?? "" });
  expect(resumed.startId).toBe(startId);
  expect((await resumed.next()).data).toMatchObject({ api_key_id: revoked });
  key = await gateway.addAccount();
  expect((await follow()).startId).toBeUndefined();
});

test("refuses to resume after an unknown event or an event of another account", async () => {
  await revokeKey();
  const [foreign] = await list(1);
  key = await gateway.addAccount();
  for (const id of [foreign?.id ?? "", "evt_none"]) expect((await stream({ "last-event-id": id })).status).toBe(404);
});

test("streams events over Connect", async () => {
  const client = createClient(EventService, createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" }));
  const headers = { authorization: `Bearer ${key}` };
  const revoked = [await revokeKey(), await revokeKey()];
  const events = await list(2);
  // Over HTTP/1.1, leaving the loop does not end the request.
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const watched = client.watch({ afterEventId: events[1]?.id ?? "" }, { headers, signal: over.signal });
  for await (const { data } of watched) {
    expect(data).toMatchObject({ api_key_id: revoked[1] });
    break;
  }
});
