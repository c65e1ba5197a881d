import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { referenceSamples, sampleAnswer, sampleSession } from "../openapi/reference-samples.ts";
import { doubtfulFetches, finalFaults, passingFaults, refusals } from "./faults.ts";
import {
  answers,
  drips,
  fails,
  frame,
  resets,
  stalls,
  startFrame,
  startMisbehaving,
  streams,
} from "./misbehaving-server.ts";
import { halves, installWheel, type PythonPackage } from "./python-package.ts";

const session = { id: "ses_1", status: "live" };
const created = answers(201, session);
/** Problem of a session that has ended. */
const ended = '{"type":"http://x/errors/session-destroyed","title":"t","status":410}';

let python: PythonPackage;
beforeAll(async () => {
  python = await installWheel();
}, 600_000);
afterAll(() => python?.[Symbol.asyncDispose]());

/** Asynchronous callbacks. A module of their own, because programs of the synchronous half have no `async`. */
const slowCallbacks = `import functools
from pilothouse import AsyncPilothouse, Pilothouse
async def slow(value): pass
class Slow:
    async def __call__(self, value): pass
callbacks = [slow, Slow(), functools.partial(slow)]
clients = [Pilothouse, AsyncPilothouse]
`;

/** Formats a program that shows the facts of the error of some statements. */
function shownError(...statements: readonly string[]): string {
  return `try:
${statements.map((statement) => `    ${statement}`).join("\n")}
except PilothouseError as error:
    show({"class": type(error).__name__, **{name: getattr(error, name, None) for name in ["slug", "request_id", "detail"]}})`;
}

test("refuses asynchronous callbacks where nothing awaits them, before a request", async () => {
  await using server = await startMisbehaving(created);
  await writeFile(join(python.directory, "slow.py"), slowCallbacks);
  const program = `from slow import callbacks, clients
for callback in callbacks:
    for name in ["on_step", "on_person_needed"]:
        try:
            client.agents.run("count", **{name: callback})
        except TypeError as error:
            show("asynchronous" in str(error))
for kind in clients:
    try:
        kind(api_key="k", log=callbacks[0])
    except TypeError as error:
        show("asynchronous" in str(error))`;
  expect(await python.runProgram("synchronous", server.url, program)).toEqual(Array(8).fill(true));
  expect(server.received).toEqual([]);
});

test("Python samples of the reference page send the requests of their operations", async () => {
  await using server = await startMisbehaving(answers(200, sampleAnswer));
  const samples = referenceSamples();
  const program = [
    `session = client.sessions.get("${sampleSession}")`,
    'content = "text"',
    ...samples.map((each) => each.python),
  ];
  await python.runProgram("synchronous", server.url, program.join("\n"));
  const received = server.received.slice(1);
  expect(received.map(({ line }) => line)).toEqual(samples.map(({ line }) => line));
  for (const [index, { body, python: text }] of samples.entries()) {
    if (body !== undefined) expect(JSON.parse(received[index]?.body ?? ""), text).toEqual(body);
  }
});

describe.each(halves)("the %s half", (half) => {
  test.each(passingFaults)("repeats a POST after %s, with the same idempotency key", async (_, fault) => {
    await using server = await startMisbehaving(fault, created);
    const program = 'show((await client.sessions.create(timezone="UTC")).id)';
    expect(await python.runProgram(half, server.url, program)).toEqual(["ses_1"]);
    const [first, second, ...more] = server.received;
    expect(more).toEqual([]);
    expect(first?.headers["idempotency-key"]).toMatch(/^[\w-]{36}$/);
    expect(second?.headers["idempotency-key"]).toBe(first?.headers["idempotency-key"]);
    expect(JSON.parse(second?.body ?? "")).toEqual({ timezone: "UTC" });
  });

  test("waits as long as Retry-After demands", async () => {
    await using server = await startMisbehaving(fails(429, "rate-limited", { "retry-after": "1" }), created);
    const program = `import time
began = time.monotonic()
await client.sessions.create()
show(time.monotonic() - began)`;
    const [seconds] = await python.runProgram(half, server.url, program);
    expect(seconds).toBeGreaterThan(0.99);
  });

  test.each(finalFaults)("raises %s at once if a repetition cannot help", async (slug, fault) => {
    await using server = await startMisbehaving(fault);
    const shown = await python.runProgram(half, server.url, shownError("await client.sessions.create()"));
    expect(shown).toMatchObject([{ slug, request_id: "req_1" }]);
    expect(server.received).toHaveLength(1);
  });

  test("gives interactions a key of their own each, and keeps it in retries", async () => {
    await using server = await startMisbehaving(created, resets, answers(200, {}));
    await python.runProgram(
      half,
      server.url,
      `session = await client.sessions.create()\n${'await session.tap("#buy")\n'.repeat(2)}`,
    );
    const [, ...taps] = server.received;
    const keys = taps.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toEqual([keys[0], keys[0], keys[2]]);
    expect(keys[2]).not.toBe(keys[0]);
    expect(JSON.parse(taps[0]?.body ?? "")).toEqual({ action: { kind: "tap", selector: "#buy" } });
  });

  test.each([
    ["a POST that accepts no idempotency key", 'client.request("POST", "/v1/webhooks", {})', "POST"],
    ["the upload of an iterator", 'session.files.put("a.txt", chunks())', "PUT"],
  ])("never repeats %s", async (_, call, method) => {
    await using server = await startMisbehaving(created, resets);
    const program = `async def chunks():
    yield b"a"
session = await client.sessions.create()
${shownError(`await ${call}`)}`;
    const log = "log=lambda entry: show([entry.method, entry.attempt])";
    // An iterator that was read cannot be sent again, so that a second attempt would not reach the server.
    expect(await python.runProgram(half, server.url, program, log)).toEqual([
      ["POST", 1],
      [method, 1],
      expect.objectContaining({ class: "PilothouseConnectionError" }),
    ]);
    expect(server.received).toHaveLength(2);
  });

  test.each(refusals)("repeats a fetch that the service refused with %s", async (_, fault) => {
    await using server = await startMisbehaving(fault, answers(200, { title: "a" }));
    const program = 'show((await client.fetch("http://a/"))["title"])';
    expect(await python.runProgram(half, server.url, program)).toEqual(["a"]);
    expect(server.received).toHaveLength(2);
  });

  test.each(doubtfulFetches)("never repeats a fetch after %s", async (_, fault) => {
    await using server = await startMisbehaving(fault);
    await python.runProgram(half, server.url, shownError('await client.fetch("http://a/")'));
    expect(server.received).toHaveLength(1);
  });

  test("has the time of Retry-After in its errors, which have one base class", async () => {
    await using server = await startMisbehaving(
      fails(429, "rate-limited", { "retry-after": "3600" }),
      fails(429, "rate-limited", { "retry-after": new Date(0).toUTCString() }),
      fails(429, "rate-limited", {}, { retry_after_seconds: 90 }),
      fails(409, "conflict"),
      resets,
      stalls,
    );
    const program = `for _ in range(6):
    try:
        await client.sessions.create()
    except PilothouseError as error:
        show([type(error).__name__, getattr(error, "retry_after", None)])
show([issubclass(each, PilothouseError) for each in [AgentRunError, webhooks.WebhookVerificationError]])`;
    expect(await python.runProgram(half, server.url, program, "max_retries=0, timeout=0.5")).toEqual([
      ["RateLimitedError", 3600],
      ["RateLimitedError", 0],
      ["RateLimitedError", 90],
      ["ConflictError", null],
      ["PilothouseConnectionError", null],
      ["PilothouseTimeoutError", null],
      [true, true],
    ]);
  });

  test("keeps the error of a block, with a note, if its session cannot be ended", async () => {
    const failure = fails(500, "internal", { "retry-after": "3600" });
    await using server = await startMisbehaving(created, failure, created, failure);
    const program = `for fails in [True, False]:
    try:
        async with await client.sessions.create():
            if fails:
                raise KeyError("own")
    except Exception as error:
        show([type(error).__name__, getattr(error, "__notes__", [])])`;
    expect(await python.runProgram(half, server.url, program)).toEqual([
      ["KeyError", ["the session ses_1 was not ended: 500 internal"]],
      ["InternalError", []],
    ]);
  });

  test("shows no secrets in representations of its objects", async () => {
    await using server = await startMisbehaving(created);
    const program = `session = await client.sessions.create()
request = pilothouse.PersonRequest("agt_1", "ses_1", "log in", __import__("datetime").datetime.now(), "http://secret/")
show([repr(each) for each in [session, session.files, client, client.sessions, client.agents]])
show("secret" in repr(request))`;
    const name = half === "asynchronous" ? "Async" : "";
    const url = server.url.replace("//", "//eve:phk_secret@");
    expect(await python.runProgram(half, url, program)).toEqual([
      [
        `${name}BrowserSession(id='ses_1')`,
        `${name}SessionFiles(path='/v1/sessions/ses_1/files')`,
        `${name}Pilothouse(base_url='${server.url}')`,
        `${name}Sessions()`,
        `${name}Agents()`,
      ],
      false,
    ]);
  });

  test("stops after max_retries with the last error", async () => {
    await using server = await startMisbehaving(fails(500, "internal", { "retry-after": "0" }));
    const program = shownError("await client.sessions.create()");
    const shown = await python.runProgram(half, server.url, program, "max_retries=3");
    expect(shown).toMatchObject([{ class: "InternalError", slug: "internal" }]);
    expect(server.received).toHaveLength(4);
  });

  test("fails with a timeout if a body stalls or arrives too slowly", async () => {
    await using server = await startMisbehaving(created, stalls, drips);
    const state = shownError('await session.state(options={"timeout": 0.3})');
    const shown = await python.runProgram(
      half,
      server.url,
      `session = await client.sessions.create()\n${state}\n${state}`,
    );
    expect(shown).toMatchObject([{ class: "PilothouseTimeoutError" }, { class: "PilothouseTimeoutError" }]);
  });

  test("raises the error of the service if its Retry-After exceeds the deadline", async () => {
    await using server = await startMisbehaving(fails(429, "rate-limited", { "retry-after": "30" }));
    const shown = await python.runProgram(half, server.url, shownError("await client.sessions.create()"), "timeout=2");
    expect(shown).toMatchObject([{ class: "RateLimitedError", slug: "rate-limited" }]);
  });

  test("has all facts of a problem in its error", async () => {
    const errors = [{ field: "locale", message: "expected a language" }];
    await using server = await startMisbehaving(fails(409, "conflict", {}, { detail: "a", errors, stale_ref: true }));
    const program = `try:
    await client.sessions.create()
except pilothouse.errors.ConflictError as error:
    show([error.slug, error.status, error.request_id, error.detail, error.errors, error.problem["stale_ref"], str(error)])`;
    expect(await python.runProgram(half, server.url, program)).toEqual([
      ["conflict", 409, "req_1", "a", errors, true, "409 conflict: a"],
    ]);
  });

  test("logs each attempt without secrets", async () => {
    await using server = await startMisbehaving(fails(500, "internal", { "retry-after": "0" }), created);
    const log = "log=lambda e: show([e.method, e.path, e.attempt, e.status, e.request_id, e.retry_in, repr(e)])";
    const entries = await python.runProgram(half, server.url, "await client.sessions.create()", log);
    expect(entries).toMatchObject([
      ["POST", "/v1/sessions", 1, 500, "req_1", 0, expect.any(String)],
      ["POST", "/v1/sessions", 2, 201, null, null, expect.any(String)],
    ]);
    expect(JSON.stringify(entries)).not.toContain("phk_secret");
  });

  test("lists sessions over all pages", async () => {
    const page = (id: string, next: string | null) => ({ data: [{ id }], has_more: next !== null, next_cursor: next });
    await using server = await startMisbehaving(answers(200, page("ses_1", "c1")), answers(200, page("ses_2", null)));
    const program = `async for session in client.sessions.list(label=["a:1", "b:2"]):
    show(session.id)`;
    expect(await python.runProgram(half, server.url, program)).toEqual(["ses_1", "ses_2"]);
    const path = "GET /v1/sessions?label=a%3A1&label=b%3A2";
    expect(server.received.map(({ line }) => line)).toEqual([path, `${path}&cursor=c1`]);
  });

  test("resumes a broken stream after its last event, without loss or repetition", async () => {
    await using server = await startMisbehaving(
      created,
      streams([frame("evt_1", "session.live"), frame("evt_2", "session.live")], "reset"),
      resets,
      streams([frame("evt_2", "session.live"), frame("evt_3", "session.live"), 'id: evt_4\ndata: {"id":"e']),
      streams(['event: error\ndata: {"type":"about:blank/errors/internal","title":"t","status":500}\n\n']),
      streams([frame("evt_4", "session.live"), frame("evt_5", "session.completed"), frame("evt_6", "session.live")]),
    );
    const program = `async for event in (await client.sessions.create()).events():
    show(event["id"])`;
    expect(await python.runProgram(half, server.url, program)).toEqual(["evt_1", "evt_2", "evt_3", "evt_4", "evt_5"]);
    const resumed = server.received.slice(1).map(({ headers }) => headers["last-event-id"]);
    expect(resumed).toEqual([undefined, "evt_2", "evt_2", "evt_3", "evt_3"]);
  });

  test("resumes a stream that broke before its first event, after the event at which the stream started", async () => {
    await using server = await startMisbehaving(
      created,
      streams([startFrame("evt_1")], "reset"),
      streams([startFrame("evt_1"), frame("evt_2", "session.completed")]),
    );
    const program = `async for event in (await client.sessions.create()).events():
    show(event["id"])`;
    expect(await python.runProgram(half, server.url, program)).toEqual(["evt_2"]);
    const resumed = server.received.slice(1).map(({ headers }) => headers["last-event-id"]);
    expect(resumed).toEqual([undefined, "evt_1"]);
  });

  test("replaces a silent stream, and continues after its last event", async () => {
    await using server = await startMisbehaving(
      created,
      streams([frame("evt_1", "session.live")], "silence"),
      streams([frame("evt_2", "session.completed")]),
    );
    const program = `sys.modules[type(client).__module__.rpartition(".")[0] + ".transport"]._SILENCE = 0.3
async for event in (await client.sessions.create()).events():
    show(event["id"])`;
    expect(await python.runProgram(half, server.url, program)).toEqual(["evt_1", "evt_2"]);
    expect(server.received.at(-1)?.headers["last-event-id"]).toBe("evt_1");
  });

  test.each([
    ["by status", fails(410, "session-destroyed")],
    ["in the stream", streams([`event: error\ndata: ${ended}\n\n`])],
  ])("ends a resumed log if the session has ended, reported %s", async (_, end) => {
    await using server = await startMisbehaving(streams([frame("1", "navigation"), frame("2", "crash")]), end);
    const program = 'show([entry["type"] async for entry in client.sessions.logs("ses_1")])';
    expect(await python.runProgram(half, server.url, program)).toEqual([["navigation", "crash"]]);
    expect(server.received.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "2"]);
  });

  test("raises the final problem of a stream", async () => {
    const problem = '{"type":"http://x/errors/revoked-key","title":"t","status":401}';
    await using server = await startMisbehaving(created, streams([`event: error\ndata: ${problem}\n\n`]));
    const program = `session = await client.sessions.create()\n${shownError("async for event in session.events(): show(event)")}`;
    expect(await python.runProgram(half, server.url, program)).toMatchObject([{ class: "RevokedKeyError" }]);
  });

  test("cancels the task of an agent if a callback raises, and raises its error", async () => {
    await using server = await startMisbehaving(
      answers(201, { id: "ags_1", session_id: "ses_1" }),
      streams([frame("evt_1", "agent_session.transcript_entry_added", { entry: { id: "ent_1" } })]),
      answers(202, { turn_id: "trn_1", status: "queued" }),
      (response) => response.writeHead(204).end(),
    );
    const program = `async def on_step(entry): raise KeyError("own")
try:
    await client.agents.run("count", on_step=on_step)
except KeyError as error:
    show(str(error))`;
    expect(await python.runProgram(half, server.url, program)).toEqual(["'own'"]);
    expect(server.received.at(-1)?.line).toBe("DELETE /v1/agent-sessions/ags_1");
  });

  test("reads all parts of a page as Markdown, up to a limit", async () => {
    await using server = await startMisbehaving(
      created,
      answers(200, { markdown: "# A", next_offset: 3 }),
      answers(200, { markdown: "\nb" }),
      answers(200, { markdown: "c", next_offset: 3 }),
    );
    const program = `session = await client.sessions.create()
show(await session.markdown(ref="s1e5"))
try:
    await session.markdown()
except PilothouseError as error:
    show(str(error))`;
    expect(await python.runProgram(half, server.url, program)).toEqual(["# A\nb", expect.stringContaining("64 parts")]);
    const requests = server.received.slice(1, 3).map(({ body }) => JSON.parse(body));
    expect(requests).toEqual([0, 3].map((offset) => ({ ref: "s1e5", offset, max_bytes: 65_536 })));
    expect(server.received).toHaveLength(3 + 64);
  });

  test("runs an agent, reports steps and persons once although its stream breaks, and ends its session", async () => {
    const turn = { turn_id: "trn_1", status: "done", text: "two", output: { count: 2 } };
    const person = {
      agent_session_id: "ags_1",
      session_id: "ses_1",
      instructions: "log in",
      timeout_at: "2026-11-25T10:00:00.000Z",
    };
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
    const program = `async def on_step(entry): show(entry["id"])
async def on_person(person): show([person.instructions, person.live_url, person.timeout_at.isoformat()])
result = await client.agents.run("count", schema={"type": "object"}, session_id="ses_1", on_step=on_step, on_person_needed=on_person)
show(result.output)`;
    expect(await python.runProgram(half, server.url, program)).toEqual([
      "ent_1",
      ["log in", "http://live.example/", "2026-11-25T10:00:00+00:00"],
      { count: 2 },
    ]);
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
    expect(
      await python.runProgram(
        half,
        server.url,
        'result = await client.agents.run("count")\nshow([result.text, result.agent_session_id, result.session_id])',
      ),
    ).toEqual([["two", "ags_1", "ses_1"]]);
  });
});
