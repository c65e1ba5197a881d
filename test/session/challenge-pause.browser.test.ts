import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { CaptureKind, OnChallenge, SessionEndedReason, SessionStatus } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

const pollOptions = { timeout: 15_000, interval: 50 };

let site: FixtureSite;
let worker: WorkerUnderTest;
/** Session of the tests that leave it live, with one page. */
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

async function openAtCheck(...parameters: Parameters<WorkerUnderTest["open"]>): Promise<DrivenSession> {
  const session = await open(...parameters);
  await reachCheck(session);
  return session;
}

async function reachCheck(session: DrivenSession): Promise<void> {
  const answer = await session.navigate({ url: site.url("/check.html") });
  expect(answer).toMatchObject({ status: SessionStatus.PAUSED, httpStatus: 200, title: "One more step" });
}

const never = { condition: { case: "text" as const, value: { text: "nothing says this" } } };
const tap = (selector: string) => ({ action: { case: "tap" as const, value: { selector } } });
const passing = { ...tap("#pass"), whilePaused: true };
const refused = { slug: "conflict", extensions: { pause_reason: "generic" } };

async function becomes(session: DrivenSession, status: SessionStatus): Promise<void> {
  await vi.waitUntil(async () => (await session.state()).status === status, pollOptions);
}

function toldOf({ placement }: DrivenSession) {
  return worker.happenings.filter(({ sessionId }) => sessionId === placement.sessionId).map(({ event }) => event);
}

describe("a session at a bot check", () => {
  test("refuses commands, but accepts captures and actions marked for the pause", async () => {
    const session = shared;
    const before = toldOf(session).length;
    await reachCheck(session);
    await expect(session.navigate({ url: site.url("/plain.html") })).rejects.toMatchObject(refused);
    await expect(session.wait(never)).rejects.toMatchObject(refused);
    await expect(session.interact(tap("#pass"))).rejects.toMatchObject(refused);
    expect((await session.capture({ kind: CaptureKind.SCREENSHOT })).header.contentType).toBe("image/png");
    await session.interact(passing);
    await becomes(session, SessionStatus.LIVE);
    const answer = await session.navigate({ url: site.url("/plain.html") });
    expect(answer.status).toBe(SessionStatus.LIVE);
    const value = { challenge: "generic", url: site.url("/check.html"), paused: true };
    expect(toldOf(session).slice(before)).toEqual([
      { case: "challengeSeen", value },
      { case: "challengeGone", value: {} },
    ]);
  });

  test("ends a running wait and queued commands, but runs actions marked for the pause", async () => {
    const session = shared;
    await session.navigate({ url: site.url("/to-check.html") });
    await session.interact(tap("#soon"));
    const waiting = expect(session.wait(never)).rejects.toMatchObject(refused);
    const queued = expect(session.navigate({ url: site.url("/plain.html") })).rejects.toMatchObject(refused);
    const goingOn = session.interact(passing);
    await Promise.all([waiting, queued]);
    expect((await goingOn).url).toBe(site.url("/form.html"));
  });

  test("answers the navigate that reached the check although the page never finishes loading", async () => {
    const session = await open();
    const answer = await session.navigate({ url: site.url("/endless-check"), timeoutMs: 2_500 });
    expect(answer).toMatchObject({ status: SessionStatus.PAUSED, httpStatus: 403 });
  });

  test("does not become idle, but expires", async () => {
    const [idle, expiring] = await Promise.all([
      openAtCheck({ idleTimeoutSeconds: 1 }),
      openAtCheck({ timeoutSeconds: 5 }),
    ]);
    await delay(1_500);
    expect(toldOf(idle).map((event) => event.case)).toEqual(["challengeSeen"]);
    await idle.interact(passing);
    const ended = (reason: SessionEndedReason) => ({ case: "ended", value: { reason } });
    await vi.waitFor(() => expect(toldOf(idle).at(-1)).toMatchObject(ended(SessionEndedReason.IDLE)), pollOptions);
    await vi.waitFor(
      () => expect(toldOf(expiring).at(-1)).toMatchObject(ended(SessionEndedReason.EXPIRED)),
      pollOptions,
    );
  });

  test("stays live in report mode and reports the check", async () => {
    const session = await open({ onChallenge: OnChallenge.REPORT });
    const answer = await session.navigate({ url: site.url("/check.html") });
    expect(answer.status).toBe(SessionStatus.LIVE);
    const state = await session.state();
    expect(state).toMatchObject({ status: SessionStatus.LIVE, challenge: { kind: "generic" } });
    expect(state.pauseReason).toBeUndefined();
    await session.navigate({ url: site.url("/plain.html") });
    expect((await session.state()).challenge).toBeUndefined();
    expect(toldOf(session)).toMatchObject([{ value: { paused: false } }, { case: "challengeGone" }]);
  });

  test("stores results under an idempotency key, but no refusals", async () => {
    const session = shared;
    const landing = [{ url: site.url("/check.html") }, { idempotencyKey: "landing" }] as const;
    const landed = await session.navigate(...landing);
    expect(await session.navigate(...landing)).toEqual(landed);
    const key = { idempotencyKey: "later" };
    await expect(session.interact(tap("#go"), key)).rejects.toMatchObject(refused);
    await session.interact(passing);
    await becomes(session, SessionStatus.LIVE);
    expect((await session.interact(tap("#go"), key)).title).toBe("click go 1");
    expect((await session.interact(tap("#go"), key)).title).toBe("click go 1");
  });

  test("stays paused while the check hangs", async () => {
    const session = await openAtCheck();
    await session.interact({ ...tap("#hang"), whilePaused: true, timeoutMs: 1_000 }).catch(() => undefined);
    await delay(1_500);
    expect(await session.state()).toMatchObject({ status: SessionStatus.PAUSED, challenge: { kind: "generic" } });
    expect(toldOf(session)).toHaveLength(1);
  });

  test("is paused by a check in a popup until the popup closes", async () => {
    const session = shared;
    await session.navigate({ url: site.url("/to-check.html") });
    await session.interact(tap("#popup"));
    await becomes(session, SessionStatus.PAUSED);
    await session.interact({ ...tap("#leave"), whilePaused: true });
    await becomes(session, SessionStatus.LIVE);
    expect((await session.interact(tap("body"))).title).toBe("To a check");
  });
});
