import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DoomedService } from "../chaos/doomed-service.ts";
import { descendantsOf } from "../support/process-list.ts";
import { ProfileSites } from "../support/profile-sites.ts";

/** Milliseconds for a test of several browsers on a busy machine. */
const timeout = 90_000;

/** Milliseconds in which a worker that has ended is there again, and what it left is saved. */
const backWithin = 45_000;

let doomed: DoomedService;
const count = 20;
const sites = new ProfileSites(count);

const rest: DoomedService["rest"] = (path, body, init) => doomed.rest(path, body, init);

async function createProfile(): Promise<string> {
  const { status, body } = await rest("/v1/profiles", { name: "Twenty sites" });
  expect(status).toBe(201);
  return body.id;
}

async function destroy(session: string): Promise<void> {
  expect((await rest(session, undefined, { method: "DELETE" })).status).toBe(204);
}

async function expectEnd(session: string, ended_reason: string): Promise<void> {
  await expect.poll(async () => (await rest(session)).body, { timeout: 20_000 }).toMatchObject({ ended_reason });
}

beforeAll(async () => {
  await sites.start();
  doomed = await DoomedService.start({ EGRESS_ALLOW: "127.0.0.0/8", WARM_BROWSERS: "0" });
});

afterAll(async () => {
  await doomed[Symbol.asyncDispose]();
  await sites.stop();
});

describe.for([
  ["headless-shell", "chromium"],
  ["chromium", "headless-shell"],
] as const)("a profile of many sites, used by %s", ([runtime, other]) => {
  let profile_id = "";
  /** The session that has the profile, and what its visit left there. */
  let session = "";
  let left = 0;

  beforeAll(async () => {
    profile_id = await createProfile();
    session = await doomed.create({ profile_id, runtime });
    await sites.visit(rest, session, { left: String(left) });
  }, timeout);

  async function tryCreate(next: string | undefined): Promise<number> {
    const { status, body } = await rest("/v1/sessions", { profile_id, runtime: next });
    if (status === 201) session = `/v1/sessions/${body.id}`;
    return status;
  }

  /** Goes on with another session: visits all sites, counts what the session before left, and leaves something else. */
  async function goOn({ runtime: next = runtime, isApart = false } = {}) {
    await expect.poll(() => tryCreate(next), { timeout: backWithin, interval: 100 }).toBe(201);
    const found = String(left);
    left += 1;
    return sites.visit(rest, session, { found, left: String(left), isApart });
  }

  const savedAt = async () => (await rest(`/v1/profiles/${profile_id}`)).body.saved_at;

  test("should come back whole after a destroy", { timeout }, async () => {
    await destroy(session);
    expect(await goOn()).toEqual(sites.whole);
  });

  test("should come back whole after a page has crashed", { timeout }, async () => {
    const renderers = descendantsOf(doomed.workerPid).filter(({ command }) => command.includes("--type=renderer"));
    await doomed.kill(...renderers.map(({ pid }) => pid));
    await destroy(session);
    expect(await goOn()).toEqual(sites.whole);
  });

  test("should come back whole from behind an endless script", { timeout }, async () => {
    const url = doomed.site.url("/endless.html");
    await rest(`${session}/navigate`, { url, timeout_ms: 500, wait_until: "commit" });
    await destroy(session);
    expect(await goOn()).toEqual(sites.whole);
  });

  test("should come back whole after its worker was told to stop", { timeout }, async () => {
    process.kill(doomed.workerPid, "SIGTERM");
    await expectEnd(session, "worker_lost");
    expect(await goOn({ isApart: true })).toEqual(sites.whole);
  });

  test("should lose next to nothing when the browser is killed", { timeout }, async () => {
    await expect.poll(() => doomed.browsers.length).toBe(1);
    await doomed.kill(...doomed.browsers.map(({ pid }) => pid));
    await expectEnd(session, "crashed");
    const found = await goOn({ isApart: true });
    expect([found.indexedDb, found.localStorage >= count - 1]).toEqual([count, true]);
  });

  test("should lose next to nothing when the worker is killed and comes back", { timeout }, async () => {
    const before = await savedAt();
    await doomed.kill(doomed.workerPid);
    await expectEnd(session, "worker_lost");
    await expect.poll(savedAt, { timeout: backWithin }).not.toBe(before);
    const found = await goOn();
    expect([found.indexedDb, found.localStorage >= count - 1]).toEqual([count, true]);
  });

  test(`should come back whole in ${other}`, { timeout }, async () => {
    await destroy(session);
    expect(await goOn({ runtime: other })).toEqual(sites.whole);
    await destroy(session);
  });
});

test("a profile of many sites should come back whole after its session has ended by itself", { timeout }, async () => {
  const profile_id = await createProfile();
  const session = await doomed.create({ profile_id, idle_timeout_seconds: 10 });
  await sites.visit(rest, session, { left: "before" });
  await expectEnd(session, "idle");
  const again = await doomed.create({ profile_id });
  expect(await sites.visit(rest, again, { found: "before" })).toEqual(sites.whole);
});

test("should leave nothing behind", () => doomed.expectCleanEnd());
