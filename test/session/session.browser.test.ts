import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { CaptureKind, SessionEndedReason, SessionStatus } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { withLong } from "../support/long-test.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

let site: FixtureSite;
let worker: WorkerUnderTest;
/** Session of the tests that keep it running and leave it with one page. */
let shared: DrivenSession;

beforeAll(async () => {
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host]);
  shared = await worker.open();
});

afterAll(async () => {
  await shared?.destroy();
  await worker?.stop();
  await site?.stop();
});

async function open(...parameters: Parameters<WorkerUnderTest["open"]>): Promise<DrivenSession> {
  const session = await worker.open(...parameters);
  onTestFinished(() => session.destroy());
  return session;
}

const text = (text: string) => ({ condition: { case: "text" as const, value: { text } } });
const tap = (selector: string) => ({ action: { case: "tap" as const, value: { selector } } });
/** Enables `#soon` of `/targets.html?by-key`. */
const enableSoon = { action: { case: "key" as const, value: { key: "Shift" } } };

test.each(withLong(["headless-shell"], ["chromium"]))("opens a popup of %s in its requested size", async (runtime) => {
  const session = await open({ runtime });
  await session.navigate({ url: site.url("/popups.html") });
  await session.interact(tap("#open-small"));
  await vi.waitUntil(async () => (await session.state()).pages.length === 2, { timeout: 10_000 });
  const { header } = await session.capture({ kind: CaptureKind.SCREENSHOT });
  expect(header).toMatchObject({ width: 300, height: 200 });
});

describe("a session's command queue", () => {
  test("runs commands one by one in order of arrival", async () => {
    await shared.navigate({ url: site.url("/form.html") });
    const done: string[] = [];
    const note = (name: string) => () => void done.push(name);
    await Promise.all([
      shared.wait({ ...text("never"), timeoutMs: 400 }).catch(note("wait")),
      shared.interact(tap("#go")).then(note("tap")),
      shared.navigate({ url: site.url("/plain.html") }).then(note("navigate")),
    ]);
    expect(done).toEqual(["wait", "tap", "navigate"]);
  });

  test("runs captures and states during a wait", async () => {
    await shared.navigate({ url: site.url("/form.html") });
    const stopped = new AbortController();
    const waiting = shared
      .wait({ ...text("never"), timeoutMs: 60_000 }, { signal: stopped.signal })
      .catch(() => "over");
    await shared.capture({ kind: CaptureKind.SCREENSHOT });
    expect((await shared.state()).title).toBe("Form");
    expect(await Promise.race([waiting, "waits"])).toBe("waits");
    stopped.abort();
    await waiting;
  });

  test("makes captures wait for a running navigate", async () => {
    await shared.navigate({ url: site.url("/form.html") });
    const done: string[] = [];
    const navigating = shared
      .navigate({ url: site.url("/silent"), timeoutMs: 2_000 })
      .catch(() => done.push("navigate"));
    await expect.poll(() => site.requests).toContain("GET /silent");
    await shared.capture({ kind: CaptureKind.DOM_SNAPSHOT }).then(() => done.push("capture"));
    await navigating;
    expect(done).toEqual(["navigate", "capture"]);
  });

  test("queues 64 commands and refuses more, and all fail immediately on destroy", async () => {
    const session = await open();
    await session.navigate({ url: site.url("/form.html") });
    const waits = Array.from({ length: 66 }, () =>
      session.wait(text("never")).catch(({ slug, extensions }) => `${slug} ${extensions.ended_reason}`),
    );
    expect(await Promise.race(waits)).toBe("conflict undefined");
    await session.destroy();
    const failures = await Promise.all(waits);
    expect(failures.filter((failure) => failure === "conflict undefined")).toHaveLength(1);
    expect(failures.filter((failure) => failure === "session-destroyed destroyed")).toHaveLength(65);
  });

  test("drops queued commands and ends a running wait when their caller disconnects", async () => {
    await shared.navigate({ url: site.url("/form.html") });
    const gone = new AbortController();
    const goneFirst = new AbortController();
    const running = shared.wait({ ...text("never"), timeoutMs: 60_000 }, { signal: gone.signal }).catch(() => "ended");
    const queued = shared.interact(tap("#check"), { signal: goneFirst.signal }).catch(() => "dropped");
    const next = shared.interact(tap("#go"));
    await shared.state();
    goneFirst.abort();
    await shared.state();
    gone.abort();
    expect(await Promise.all([running, queued])).toEqual(["ended", "dropped"]);
    expect((await next).title).toBe("click go 1");
    expect((await shared.capture({ kind: CaptureKind.DOM_SNAPSHOT })).data.toString()).not.toContain('checked=""');
  });

  test("completes a running interact after its caller disconnects", async () => {
    await shared.navigate({ url: site.url("/targets.html") });
    const gone = new AbortController();
    const tapping = shared.interact(tap("#soon"), { signal: gone.signal }).catch(() => undefined);
    await shared.state();
    gone.abort();
    await tapping;
    await vi.waitUntil(async () => (await shared.state()).title === "clicked soon", { timeout: 20_000 });
  });

  test("ends a queued command at its caller's timeout", async () => {
    await shared.navigate({ url: site.url("/form.html") });
    const stopped = new AbortController();
    const first = shared.wait(text("never"), { signal: stopped.signal }).catch(() => undefined);
    await expect(shared.interact(tap("#go"), { waitMs: 300 })).rejects.toMatchObject({ slug: "session-timeout" });
    stopped.abort();
    await first;
  });
});

describe("an idempotency key", () => {
  test("prevents a second tap by a retry, even while the first is running", async () => {
    await shared.navigate({ url: site.url("/form.html") });
    const key = { idempotencyKey: "k1" };
    const [first, second] = await Promise.all([shared.interact(tap("#go"), key), shared.interact(tap("#go"), key)]);
    expect(second).toEqual(first);
    expect(await shared.interact(tap("#go"), key)).toEqual(first);
    expect((await shared.interact(tap("#go"))).title).toBe("click go 1");
    await expect(shared.interact(tap("#check"), key)).rejects.toMatchObject({ slug: "conflict" });
  });

  test("allows a retry after a failure in the browser", async () => {
    await shared.navigate({ url: site.url("/targets.html?by-key") });
    const key = { idempotencyKey: "k2" };
    await expect(shared.interact({ ...tap("#soon"), timeoutMs: 50 }, key)).rejects.toMatchObject({
      slug: "session-timeout",
    });
    await shared.interact(enableSoon);
    expect((await shared.interact(tap("#soon"), key)).title).toBe("clicked soon");
  });
});

describe("a step of an agent turn", () => {
  test("runs once, and returns its result on recall", async () => {
    await shared.navigate({ url: site.url("/form.html") });
    const step = { stepId: "step_1" };
    const recall = { ...step, recall: true };
    await expect(shared.interact({}, recall)).rejects.toMatchObject({ slug: "not-found" });
    const [first, asked] = await Promise.all([shared.interact(tap("#go"), step), shared.interact({}, recall)]);
    expect(first.title).toBe("click go 1");
    expect(asked).toEqual(first);
    expect(await shared.interact(tap("#go"), step)).toEqual(first);
    await expect(shared.interact(tap("#check"), step)).rejects.toMatchObject({ slug: "conflict" });
    await expect(shared.navigate({ url: site.url("/") }, recall)).rejects.toMatchObject({ slug: "conflict" });
    expect((await shared.interact(tap("#go"), { stepId: "step_2" })).title).toBe("click go 1");
  });

  test("keeps its failure, even after a retry", async () => {
    await shared.navigate({ url: site.url("/targets.html?by-key") });
    const step = { stepId: "failing" };
    const late = { slug: "session-timeout" };
    await expect(shared.interact({ ...tap("#soon"), timeoutMs: 50 }, step)).rejects.toMatchObject(late);
    await shared.interact(enableSoon);
    await expect(shared.interact({ ...tap("#soon"), timeoutMs: 50 }, step)).rejects.toMatchObject(late);
    await expect(shared.interact({}, { ...step, recall: true })).rejects.toMatchObject(late);
  });

  test("continues without its caller, and answers the next one", async () => {
    await shared.navigate({ url: site.url("/targets.html") });
    const gone = new AbortController();
    const step = { stepId: "abandoned" };
    const tapping = shared.interact(tap("#soon"), { ...step, signal: gone.signal }).catch(() => undefined);
    await shared.state();
    gone.abort();
    await tapping;
    expect((await shared.interact({}, { ...step, recall: true })).title).toBe("clicked soon");
  });

  test("is not started when control refuses its stale epoch, and may be retried", async () => {
    const session = await open();
    await session.navigate({ url: site.url("/form.html") }, { controlEpoch: 3n });
    const step = { stepId: "step_1" };
    await expect(session.interact(tap("#go"), { ...step, controlEpoch: 2n })).rejects.toMatchObject({
      slug: "conflict",
    });
    expect((await session.interact(tap("#go"), { ...step, controlEpoch: 3n })).title).toBe("click go 1");
    const held = { controlEpoch: 4n, holderClientId: "ada" };
    expect((await session.interact({}, { ...step, ...held, recall: true })).title).toBe("click go 1");
  });

  test("is remembered while it is among the last 32", async () => {
    await shared.navigate({ url: site.url("/form.html") });
    const key = { action: { case: "key" as const, value: { key: "Shift" } } };
    for (let step = 0; step <= 32; step += 1) await shared.interact(key, { stepId: `key_${step}` });
    const recall = (stepId: string) => shared.interact({}, { stepId, recall: true });
    await expect(recall("key_0")).rejects.toMatchObject({ slug: "not-found" });
    await recall("key_1");
  });
});

describe("control and placement", () => {
  test("replaces a session by a later placement, but by no earlier one, and knows none after its end", async () => {
    const first = await open({}, 2n);
    const { sessionId } = first.placement;
    const again = (placementEpoch: bigint) => open({}, placementEpoch, "", sessionId);
    for (const epoch of [1n, 2n]) await expect(again(epoch)).rejects.toMatchObject({ slug: "conflict" });
    const second = await again(3n);
    expect((await second.state()).status).toBe(SessionStatus.LIVE);
    await expect(first.state()).rejects.toMatchObject({ slug: "session-destroyed" });
    // The gateway of the earlier placement ends its own session.
    await first.destroy();
    expect((await second.state()).status).toBe(SessionStatus.LIVE);
    const none = { slug: "session-destroyed", detail: "this worker does not have the session" };
    const placements = worker.sessions.held.filter((held) => held.sessionId === sessionId);
    expect(placements).toMatchObject([{ placementEpoch: 3n }]);
    await second.destroy();
    await expect(second.state()).rejects.toMatchObject(none);
    await expect(second.destroy()).resolves.toBeUndefined();
  });

  test("refuses an unknown runtime with its slug", async () => {
    await expect(open({ runtime: "firefox" })).rejects.toMatchObject({ slug: "driver-not-integrated" });
  });
});

describe("the end of a session", () => {
  test("follows the idle time, which excludes running commands", async () => {
    const session = await open({ idleTimeoutSeconds: 1 });
    await session.navigate({ url: site.url("/form.html") });
    await session.wait({ ...text("never"), timeoutMs: 1_500 }).catch(() => undefined);
    expect(endOf(session)).toBeUndefined();
    await vi.waitUntil(() => endOf(session) !== undefined, { timeout: 20_000 });
    expect(endOf(session)).toMatchObject({ reason: SessionEndedReason.IDLE });
    await expect(session.state()).rejects.toMatchObject({ slug: "session-destroyed" });
  });

  test("follows the session's lifetime despite running commands", async () => {
    const session = await open({ timeoutSeconds: 2 });
    await expect(session.wait(text("never"))).rejects.toMatchObject({
      slug: "session-destroyed",
      extensions: { ended_reason: "expired" },
    });
    expect(endOf(session)).toMatchObject({ reason: SessionEndedReason.EXPIRED });
  });
});

describe("the address of a page", () => {
  test("is shown without credentials", async () => {
    const { url } = await shared.navigate({ url: `http://ada:secret@${site.host}/form.html` });
    expect(url).toBe(site.url("/form.html"));
    const state = await shared.state();
    expect([state.url, ...state.pages.map((page) => page.url)]).toEqual([url, url]);
  });

  test("is cut at 2,000 characters in answers, events and state, as its title is", async () => {
    const stopped = new AbortController();
    const watch = shared.watch(stopped.signal);
    const longest = (async () => {
      for await (const { type, data } of watch) {
        const url = String(data?.url ?? "");
        if (type === "session.page_navigated" && url.includes("aaaa")) return url.length;
      }
      return 0;
    })();
    await shared.navigate({ url: site.url("/long-names.html") });
    const { url, title } = await shared.wait({ condition: { case: "selector", value: { selector: "#named" } } });
    expect([url.length, title.length]).toEqual([2_000, 2_000]);
    const state = await shared.state();
    expect([state.url.length, state.title.length]).toEqual([2_000, 2_000]);
    expect(await longest).toBe(2_000);
    stopped.abort();
  });
});

describe("an egress refusal", () => {
  test.each([
    ["http", "http://127.0.0.2:8765/"],
    ["https", "https://127.0.0.2:8765/"],
    ["http by redirect", "/to-private"],
  ])("answers driver-error with blocked_by over %s", async (_name, url) => {
    const failure = shared.navigate({ url: url.startsWith("/") ? site.url(url) : url });
    await expect(failure).rejects.toMatchObject({
      slug: "driver-error",
      extensions: { blocked_by: "egress" },
      detail: expect.stringContaining("EGRESS_ALLOW=127.0.0.2:8765"),
    });
  });

  test("does not suggest allowing the address of a cloud's metadata", async () => {
    await expect(shared.navigate({ url: "http://169.254.169.254/" })).rejects.toMatchObject({
      detail: expect.not.stringContaining("EGRESS_ALLOW"),
    });
  });
});

describe("a watch", () => {
  test("reports pages, dialogs, downloads and console lines, and ends with the session", async () => {
    const session = await open();
    await session.navigate({ url: site.url("/dialogs.html") });
    const types: string[] = [];
    const told = new Map<string, unknown>();
    const reading = (async () => {
      for await (const { type, data } of session.watch(AbortSignal.timeout(20_000))) {
        types.push(type);
        told.set(type, data);
      }
    })();
    // The stream is open once it has returned an event.
    await vi.waitUntil(
      async () => {
        await session.navigate({ url: site.url("/console.html") });
        await session.interact(tap("#say"));
        return types.includes("session.console");
      },
      { timeout: 10_000 },
    );
    await session.navigate({ url: site.url("/dialogs.html") });
    await session.interact(tap("#alert"));
    await session.navigate({ url: site.url("/popups.html") });
    await session.interact(tap("#download"));
    await session.interact(tap("#open-closing"));
    await vi.waitUntil(() => types.includes("session.page_closed") && types.includes("session.download"), {
      timeout: 10_000,
    });
    await session.destroy();
    await reading;
    const session_id = expect.stringMatching(/^ses_/);
    const page_id = expect.stringMatching(/^page_\d+$/);
    expect(Object.fromEntries(told)).toEqual({
      "session.page_opened": { session_id, page_id, url: expect.any(String) },
      "session.page_navigated": { session_id, page_id, url: expect.stringMatching(/^http/) },
      "session.page_closed": { session_id, page_id },
      "session.console": { session_id, level: "log", text: expect.any(String) },
      "session.dialog": { session_id, kind: "alert", message: expect.any(String), answer: "accepted" },
      "session.download": { session_id, file_name: expect.any(String), bytes: expect.any(Number), status: "finished" },
    });
  });
});

test.each(["#close", "#close-early"])("completes a tap on %s that closes its popup", async (selector) => {
  await shared.navigate({ url: site.url("/popups.html") });
  await shared.interact(tap("#open-self"));
  await vi.waitUntil(async () => (await shared.state()).pages.length === 2, { timeout: 10_000 });
  await shared.interact(tap(selector));
  await vi.waitUntil(async () => (await shared.state()).pages.length === 1, { timeout: 10_000 });
});

function endOf(session: DrivenSession) {
  const { sessionId } = session.placement;
  const ends = worker.happenings.filter((happening) => happening.sessionId === sessionId);
  return ends.find(({ event }) => event.case === "ended")?.event.value;
}
