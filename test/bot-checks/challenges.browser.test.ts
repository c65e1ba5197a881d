import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { SessionStatus } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { type CheckPage, checkHosts, checkPages } from "../support/check-pages.ts";
import { runtimes } from "../support/runtimes.ts";
import { resolveToLoopback, VendorSite, vendorSiteFlags } from "../support/vendor-site.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

/** Allows for a busy machine: the check takes milliseconds. */
const pollOptions = { timeout: 15_000, interval: 50 };

const pages = new Map(Object.values(checkPages).map((page, index) => [`/check-${index}`, page] as const));
const paths = new Map(Object.keys(checkPages).map((name, index) => [name, `/check-${index}`] as const));
const plainPath = "/plain";

let site: VendorSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  const plain = { html: "<!DOCTYPE html><title>Plain</title><h1>Plain</h1><button id=go>go</button>" };
  site = await new VendorSite(new Map([...pages, [plainPath, plain]])).start();
  worker = await WorkerUnderTest.start(site.allow(checkHosts), {
    browserFlags: vendorSiteFlags,
    resolve: resolveToLoopback,
  });
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

const tap = (selector: string) => ({ action: { case: "tap" as const, value: { selector } } });
const pathOf = (name: string) => paths.get(name) ?? "/";

function pass({ pass }: CheckPage) {
  const value = "selector" in pass ? { selector: pass.selector, frame: [...(pass.frame ?? [])] } : pass;
  return { action: { case: "tap" as const, value }, whilePaused: true };
}

/** Bot-check events of a session, without addresses. */
function toldOf({ placement }: DrivenSession): unknown[] {
  return worker.happenings
    .filter(({ sessionId }) => sessionId === placement.sessionId)
    .map(({ event }) => (event.case === "challengeSeen" ? event.value.challenge : event.case));
}

async function becomes(session: DrivenSession, status: SessionStatus): Promise<void> {
  await vi.waitUntil(async () => (await session.state()).status === status, pollOptions);
}

describe.each(runtimes)("in %s", (runtime) => {
  let session: DrivenSession;
  beforeAll(async () => {
    session = await worker.open({ runtime });
  });
  afterAll(() => session?.destroy());

  test.each(Object.entries(checkPages))("recognises %s and its completion", async (name, page) => {
    const before = toldOf(session).length;
    await session.navigate({ url: site.url(pathOf(name)) });
    if (page.provoke) {
      expect(await session.state()).toMatchObject({ status: SessionStatus.LIVE });
      await session.interact(tap(page.provoke));
    }
    await becomes(session, SessionStatus.PAUSED);
    const state = await session.state();
    expect(state).toMatchObject({ pauseReason: page.kind, challenge: { kind: page.kind, url: state.url } });
    await expect(session.interact(tap("body"))).rejects.toMatchObject({
      slug: "conflict",
      extensions: { pause_reason: page.kind },
    });
    await session.interact(pass(page));
    await becomes(session, SessionStatus.LIVE);
    const passed = await session.state();
    expect([passed.challenge, passed.pauseReason]).toEqual([undefined, undefined]);
    await session.navigate({ url: site.url(plainPath) });
    expect(toldOf(session).slice(before)).toEqual([page.kind, "challengeGone"]);
  });
});
