import { inspect } from "node:util";
import { expect, test } from "vitest";
import {
  AgentRunError,
  type ClientOptions,
  type LogEntry,
  Pilothouse,
  PilothouseConnectionError,
  PilothouseError,
  PilothouseResponseError,
  PilothouseTimeoutError,
  type Turn,
  webhooks,
} from "../../sdk/typescript/src/index.ts";
import { Transport } from "../../sdk/typescript/src/transport.ts";
import { doubtfulFetches, finalFaults, passingFaults, refusals } from "./faults.ts";
import {
  answers,
  drips,
  fails,
  frame,
  type MisbehavingServer,
  resets,
  type Step,
  stalls,
  startFrame,
  startMisbehaving,
  streams,
} from "./misbehaving-server.ts";

const session = { id: "ses_1", status: "live" };
const created = answers(201, session);

function clientOf({ url }: MisbehavingServer, options: ClientOptions = {}): Pilothouse {
  return new Pilothouse({ apiKey: "phk_secret", baseUrl: url, ...options });
}

function failedRun(): AgentRunError {
  const turn = { turn_id: "trn_1", status: "failed" } as Turn;
  return new AgentRunError(turn, { agentSessionId: "agt_1", sessionId: "ses_1" });
}

/** Creates a session on a server that follows a script. */
async function openOn(...steps: Step[]) {
  const server = await startMisbehaving(created, ...steps);
  return { server, session: await clientOf(server).sessions.create() };
}

test.each(passingFaults)("repeats a POST after %s, with the same idempotency key", async (_, fault) => {
  await using server = await startMisbehaving(fault, created);
  expect((await clientOf(server).sessions.create({ timezone: "UTC" })).id).toBe("ses_1");
  const [first, second, ...more] = server.received;
  expect(more).toEqual([]);
  expect(first?.headers["idempotency-key"]).toMatch(/^[\w-]{36}$/);
  expect(second?.headers["idempotency-key"]).toBe(first?.headers["idempotency-key"]);
  expect(second?.body).toBe('{"timezone":"UTC"}');
});

test("waits as long as Retry-After demands", async () => {
  await using server = await startMisbehaving(fails(429, "rate-limited", { "retry-after": "1" }), created);
  const began = performance.now();
  await clientOf(server).sessions.create();
  expect(performance.now() - began).toBeGreaterThan(990);
});

test.each(finalFaults)("throws %s at once if a repetition cannot help", async (slug, fault) => {
  await using server = await startMisbehaving(fault);
  await expect(clientOf(server).sessions.create()).rejects.toMatchObject({ slug, requestId: "req_1" });
  expect(server.received).toHaveLength(1);
});

test("gives interactions a key of their own each, and keeps it in retries", async () => {
  const { server, session } = await openOn(resets, answers(200, {}));
  await using _ = server;
  await session.tap("#buy");
  await session.tap("#buy");
  const keys = server.received.slice(1).map(({ headers }) => headers["idempotency-key"]);
  expect(keys).toEqual([keys[0], keys[0], keys[2]]);
  expect(keys[2]).not.toBe(keys[0]);
});

test("never repeats a POST that accepts no idempotency key", async () => {
  await using server = await startMisbehaving(resets);
  const call = clientOf(server).request("POST", "/v1/webhooks", { body: {} });
  await expect(call).rejects.toBeInstanceOf(PilothouseConnectionError);
  expect(server.received).toHaveLength(1);
});

test.each(refusals)("repeats a fetch that the service refused with %s", async (_, fault) => {
  await using server = await startMisbehaving(fault, answers(200, { title: "a" }));
  expect((await clientOf(server).fetch("http://a/")).title).toBe("a");
  expect(server.received).toHaveLength(2);
});

test.each(doubtfulFetches)("never repeats a fetch after %s", async (_, fault) => {
  await using server = await startMisbehaving(fault);
  await expect(clientOf(server).fetch("http://a/")).rejects.toBeInstanceOf(PilothouseError);
  expect(server.received).toHaveLength(1);
});

test.each([
  ["seconds", { "retry-after": "3600" }, {}, 3600],
  ["a date", { "retry-after": new Date(0).toUTCString() }, {}, 0],
  ["the problem", {}, { retry_after_seconds: 90 }, 90],
  ["no response", {}, {}, undefined],
])("has the time of Retry-After in its errors, from %s", async (_, headers, problem, retryAfter) => {
  await using server = await startMisbehaving(fails(429, "rate-limited", headers, problem));
  const created = clientOf(server, { maxRetries: 0 }).sessions.create();
  await expect(created).rejects.toMatchObject({ retryAfter });
});

test("has one base class for all its errors", async () => {
  await using server = await startMisbehaving(resets, fails(409, "conflict"), stalls);
  const client = clientOf(server, { maxRetries: 0, timeoutMs: 300 });
  const thrown: unknown[] = [failedRun()];
  for (let fault = 0; fault < 3; fault++) await client.sessions.create().catch((error: unknown) => thrown.push(error));
  await webhooks.verify({ body: "", headers: {}, secret: "whsec_" }).catch((error: unknown) => thrown.push(error));
  expect(thrown.map((error) => error instanceof Error && error.name)).toEqual([
    "AgentRunError",
    "PilothouseConnectionError",
    "PilothouseResponseError",
    "PilothouseTimeoutError",
    "WebhookVerificationError",
  ]);
  for (const error of thrown) expect(error).toBeInstanceOf(PilothouseError);
});

test("throws the errors of a block and of the end of its session together", async () => {
  await using server = await startMisbehaving(created, fails(500, "internal", { "retry-after": "3600" }));
  const own = new Error("own");
  const use = async () => {
    await using _ = await clientOf(server).sessions.create();
    throw own;
  };
  const thrown = await use().catch((error: unknown) => error);
  expect(thrown).toMatchObject({ name: "SuppressedError", suppressed: own, error: { slug: "internal" } });
});

test("shows no secrets of its objects in logs", async () => {
  await using server = await startMisbehaving(created);
  const client = clientOf(server);
  const session = await client.sessions.create();
  expect(inspect([client, session], { depth: 9 })).not.toContain("phk_secret");
  expect(JSON.stringify([client, session])).not.toContain("phk_secret");
});

test("stops after maxRetries with the last error", async () => {
  await using server = await startMisbehaving(fails(500, "internal", { "retry-after": "0" }));
  await expect(clientOf(server, { maxRetries: 3 }).sessions.create()).rejects.toMatchObject({ slug: "internal" });
  expect(server.received).toHaveLength(4);
});

test("never repeats the upload of a stream", async () => {
  await using server = await startMisbehaving(created, resets);
  const attempts: string[] = [];
  const log = ({ method, attempt }: LogEntry) => void attempts.push(`${method} ${attempt}`);
  const session = await clientOf(server, { log }).sessions.create();
  const upload = session.files.put("a.txt", new Blob(["a"]).stream());
  await expect(upload).rejects.toBeInstanceOf(PilothouseConnectionError);
  // A stream that was read cannot be sent again, so that a second attempt would not reach the server.
  expect(attempts).toEqual(["POST 1", "PUT 1"]);
});

test("fails with a timeout if a body stalls or arrives too slowly, and with its reason if a signal aborts", async () => {
  const { server, session } = await openOn(stalls, drips);
  await using _ = server;
  for (const timeoutMs of [100, 300]) {
    await expect(session.state({ timeoutMs })).rejects.toBeInstanceOf(PilothouseTimeoutError);
  }
  const reason = new Error("no longer needed");
  await expect(session.state({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});

test("throws the error of the service if its Retry-After exceeds the deadline", async () => {
  await using server = await startMisbehaving(fails(429, "rate-limited", { "retry-after": "30" }));
  const created = clientOf(server, { timeoutMs: 2_000 }).sessions.create();
  await expect(created).rejects.toMatchObject({ slug: "rate-limited" });
});

test("allows a call the time for which it lets the service wait", () => {
  const transport = new Transport({ apiKey: "k" });
  expect(transport.timeoutOf({ body: { timeout_ms: 5_000, wait_for_slot_ms: 50_000 } }, {})).toBe(115_000);
  expect(transport.timeoutOf({ body: { wait_ms: 60_000 } }, {})).toBe(120_000);
  expect(transport.timeoutOf({ body: { wait_ms: 60_000 } }, { timeoutMs: 1 })).toBe(1);
});

test("has all facts of a problem in its error", async () => {
  const errors = [{ field: "locale", message: "expected a language" }];
  await using server = await startMisbehaving(fails(409, "conflict", {}, { detail: "a", errors, stale_ref: true }));
  const error = await clientOf(server)
    .sessions.create()
    .catch((thrown: unknown) => thrown);
  if (!(error instanceof PilothouseResponseError) || !error.is("conflict")) throw error;
  expect({ ...error, stale: error.problem.stale_ref }).toMatchObject({
    slug: "conflict",
    status: 409,
    requestId: "req_1",
    detail: "a",
    errors,
    stale: true,
  });
});

test("logs each attempt without secrets", async () => {
  const entries: LogEntry[] = [];
  await using server = await startMisbehaving(fails(500, "internal", { "retry-after": "0" }), created);
  await clientOf(server, { log: (entry) => entries.push(entry) }).sessions.create();
  expect(entries).toMatchObject([
    { method: "POST", path: "/v1/sessions", attempt: 1, status: 500, requestId: "req_1", retryInMs: 0 },
    { attempt: 2, status: 201 },
  ]);
  expect(JSON.stringify(entries)).not.toContain("phk_secret");
});

test("lists sessions over all pages", async () => {
  const page = (id: string, next: string | null) => ({ data: [{ id }], has_more: next !== null, next_cursor: next });
  await using server = await startMisbehaving(answers(200, page("ses_1", "c1")), answers(200, page("ses_2", null)));
  const ids: string[] = [];
  for await (const { id } of clientOf(server).sessions.list({ label: ["a:1", "b:2"] })) ids.push(id);
  expect(ids).toEqual(["ses_1", "ses_2"]);
  const path = "GET /v1/sessions?label=a%3A1&label=b%3A2";
  expect(server.received.map(({ line }) => line)).toEqual([path, `${path}&cursor=c1`]);
});

test("resumes a broken stream after its last event, without loss or repetition", async () => {
  const { server, session } = await openOn(
    streams([frame("evt_1", "session.live"), frame("evt_2", "session.live")], "reset"),
    resets,
    streams([frame("evt_2", "session.live"), frame("evt_3", "session.live"), 'id: evt_4\ndata: {"id":"e']),
    streams(['event: error\ndata: {"type":"about:blank/errors/internal","title":"t","status":500}\n\n']),
    streams([frame("evt_4", "session.live"), frame("evt_5", "session.completed"), frame("evt_6", "session.live")]),
  );
  await using _ = server;
  const ids: (string | undefined)[] = [];
  for await (const { id } of session.events()) ids.push(id);
  expect(ids).toEqual(["evt_1", "evt_2", "evt_3", "evt_4", "evt_5"]);
  const resumed = server.received.slice(1).map(({ headers }) => headers["last-event-id"]);
  expect(resumed).toEqual([undefined, "evt_2", "evt_2", "evt_3", "evt_3"]);
});

test("resumes a stream that broke before its first event, after the event at which the stream started", async () => {
  const { server, session } = await openOn(
    streams([startFrame("evt_1")], "reset"),
    streams([startFrame("evt_1")]),
    streams([startFrame("evt_1"), frame("evt_2", "session.completed")]),
  );
  await using _ = server;
  const ids: (string | undefined)[] = [];
  for await (const { id } of session.events()) ids.push(id);
  expect(ids).toEqual(["evt_2"]);
  const resumed = server.received.slice(1).map(({ headers }) => headers["last-event-id"]);
  expect(resumed).toEqual([undefined, "evt_1", "evt_1"]);
});

test("replaces a silent stream, and continues after its last event", async () => {
  const { server, session } = await openOn(
    streams([frame("evt_1", "session.live")], "silence"),
    streams([frame("evt_2", "session.completed")]),
  );
  await using _ = server;
  const ids: (string | undefined)[] = [];
  for await (const { id } of session.events({ silenceMs: 300 })) ids.push(id);
  expect(ids).toEqual(["evt_1", "evt_2"]);
  expect(server.received.at(-1)?.headers["last-event-id"]).toBe("evt_1");
});

test("ends a resumed log if the session has ended, whether by status or in the stream", async () => {
  const problem = '{"type":"http://x/errors/session-destroyed","title":"t","status":410}';
  for (const end of [fails(410, "session-destroyed"), streams([`event: error\ndata: ${problem}\n\n`])]) {
    await using server = await startMisbehaving(streams([frame("1", "navigation"), frame("2", "crash")]), end);
    const types: string[] = [];
    for await (const { type } of clientOf(server).sessions.logs("ses_1")) types.push(type);
    expect(types).toEqual(["navigation", "crash"]);
    expect(server.received.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "2"]);
    expect(server.received[0]?.line).toBe("GET /v1/sessions/ses_1/logs/stream");
  }
});

test("throws the final problem of a stream", async () => {
  const problem = '{"type":"http://x/errors/revoked-key","title":"t","status":401}';
  const { server, session } = await openOn(streams([`event: error\ndata: ${problem}\n\n`]));
  await using _ = server;
  await expect(session.events().next()).rejects.toMatchObject({ slug: "revoked-key" });
});

test("cancels the task of an agent if a callback throws, and throws its error", async () => {
  await using server = await startMisbehaving(
    answers(201, { id: "ags_1", session_id: "ses_1" }),
    streams([frame("evt_1", "agent_session.transcript_entry_added", { entry: { id: "ent_1" } })]),
    answers(202, { turn_id: "trn_1", status: "queued" }),
    (response) => response.writeHead(204).end(),
  );
  const own = new Error("own");
  const onStep = () => Promise.reject(own);
  await expect(clientOf(server).agents.run("count", { onStep })).rejects.toBe(own);
  expect(server.received.at(-1)?.line).toBe("DELETE /v1/agent-sessions/ags_1");
});

test("has the ids of its sessions in the error of a run", async () => {
  await using server = await startMisbehaving(
    answers(201, { id: "ags_1", session_id: "ses_1" }),
    streams([
      startFrame("evt_1"),
      frame("evt_2", "agent_session.turn_ended", { turn: { turn_id: "trn_1", status: "failed" } }),
    ]),
    answers(202, { turn_id: "trn_1", status: "queued" }),
    (response) => response.writeHead(204).end(),
  );
  const run = clientOf(server).agents.run("count");
  await expect(run).rejects.toMatchObject({ name: "AgentRunError", agentSessionId: "ags_1", sessionId: "ses_1" });
});

test("reads all parts of a page as Markdown, up to a limit", async () => {
  const { server, session } = await openOn(
    answers(200, { markdown: "# A", next_offset: 3 }),
    answers(200, { markdown: "\nb" }),
    answers(200, { markdown: "c", next_offset: 3 }),
  );
  await using _ = server;
  expect(await session.markdown({ ref: "s1e5" })).toBe("# A\nb");
  const requests = server.received.slice(1).map(({ body }) => JSON.parse(body));
  expect(requests).toEqual([0, 3].map((offset) => ({ ref: "s1e5", offset, max_bytes: 65_536 })));
  await expect(session.markdown()).rejects.toThrow("at most 64 parts");
  expect(server.received).toHaveLength(3 + 64);
});

test("runs an agent, reports steps and persons once although its stream breaks, and ends its session", async () => {
  const turn = { turn_id: "trn_1", status: "done", text: "two", output: { count: 2 } };
  const person = { agent_session_id: "ags_1", session_id: "ses_1", instructions: "log in", timeout_at: "2026-11-25" };
  await using server = await startMisbehaving(
    answers(201, { id: "ags_1", session_id: "ses_1" }),
    streams([frame("evt_1", "agent_session.transcript_entry_added", { entry: { id: "ent_1" } })]),
    answers(202, { turn_id: "trn_1", status: "queued" }),
    streams([
      frame("evt_1", "agent_session.transcript_entry_added", { entry: { id: "ent_1" } }),
      frame("evt_2", "agent_session.person_needed", person),
      frame("evt_3", "agent_session.turn_ended", { turn }),
    ]),
    answers(201, { url: "http://live.example/" }),
    (response) => response.writeHead(204).end(),
  );
  const seen: string[] = [];
  const { output } = await clientOf(server).agents.run<{ count: number }>("count", {
    schema: { type: "object" },
    sessionId: "ses_1",
    onStep: ({ id }) => void seen.push(id),
    onPersonNeeded: ({ instructions, liveUrl }) => void seen.push(instructions, liveUrl),
  });
  expect(output.count).toBe(2);
  expect(seen).toEqual(["ent_1", "log in", "http://live.example/"]);
  expect(server.received.map(({ line }) => line)).toEqual([
    "POST /v1/agent-sessions",
    "GET /v1/agent-sessions/ags_1/events",
    "POST /v1/agent-sessions/ags_1/message",
    "GET /v1/agent-sessions/ags_1/events",
    "POST /v1/sessions/ses_1/view-links",
    "DELETE /v1/agent-sessions/ags_1",
  ]);
});

test("returns the result of an agent whose stream breaks before its first event", async () => {
  const turn = { turn_id: "trn_1", status: "done", text: "two" };
  await using server = await startMisbehaving(
    answers(201, { id: "ags_1", session_id: "ses_1" }),
    streams([], "reset"),
    answers(202, { turn_id: "trn_1", status: "queued" }),
    streams([], "silence"),
    answers(200, turn),
    answers(200, turn),
    (response) => response.writeHead(204).end(),
  );
  const result = await clientOf(server).agents.run("count");
  expect(result).toMatchObject({ text: "two", agentSessionId: "ags_1", sessionId: "ses_1" });
});
