import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DoomedService } from "../chaos/doomed-service.ts";
import { descendantsOf } from "../support/process-list.ts";
import { ProfileSites } from "../support/profile-sites.ts";

/** Milliseconds in which a worker that was killed is there again, and what it left is saved. */
const backWithin = 30_000;

/** Milliseconds for a test of several browsers on a busy machine. */
const timeout = 90_000;

let doomed: DoomedService;
const sites = new ProfileSites();

beforeAll(async () => {
  await sites.start();
  doomed = await DoomedService.start({ EGRESS_ALLOW: "127.0.0.0/8", WARM_BROWSERS: "0" });
});

afterAll(async () => {
  await doomed[Symbol.asyncDispose]();
  await sites.stop();
});

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

/** The ends that a session can have while its worker goes on. */
const ends = {
  "a destroy": destroy,
  "its idle time": (session: string) => expectEnd(session, "idle"),
  async "a crashed page"(session: string) {
    const renderers = descendantsOf(doomed.workerPid).filter(({ command }) => command.includes("--type=renderer"));
    await doomed.kill(...renderers.map(({ pid }) => pid));
    await destroy(session);
  },
  async "an endless script"(session: string) {
    const url = doomed.site.url("/endless.html");
    await rest(`${session}/navigate`, { url, timeout_ms: 500, wait_until: "commit" });
    await destroy(session);
  },
};

describe.for([
  ["headless-shell", "chromium"],
  ["chromium", "headless-shell"],
])("a profile of 20 sites, used by %s", ([runtime, other]) => {
  test.for(Object.entries(ends))("should come back whole after %s", { timeout }, async ([, end]) => {
    const profile_id = await createProfile();
    const session = await doomed.create({ profile_id, runtime, idle_timeout_seconds: 10 });
    await sites.visit(rest, session, { left: "one" });
    await end(session);
    const again = await doomed.create({ profile_id, runtime: other });
    expect(await sites.visit(rest, again, { found: "one" })).toEqual(sites.whole);
    await destroy(again);
  });

  test("should lose next to nothing when the browser is killed", { timeout }, async () => {
    const profile_id = await createProfile();
    const session = await doomed.create({ profile_id, runtime });
    await sites.visit(rest, session, { left: "one", isApart: true });
    await doomed.kill(doomed.browserOfSession(runtime ?? "").pid);
    await expectEnd(session, "crashed");
    const again = await doomed.create({ profile_id, runtime });
    const found = await sites.visit(rest, again, { found: "one" });
    expect([found.indexedDb, found.localStorage >= 19]).toEqual([20, true]);
    await destroy(again);
  });

  test("should lose next to nothing when the worker is killed and comes back", { timeout }, async () => {
    const profile_id = await createProfile();
    const session = await doomed.create({ profile_id, runtime });
    await sites.visit(rest, session, { left: "one", isApart: true });
    await doomed.kill(doomed.workerPid);
    await expectEnd(session, "worker_lost");
    await expect
      .poll(async () => (await rest(`/v1/profiles/${profile_id}`)).body.saved_at, { timeout: backWithin })
      .toBeTruthy();
    await doomed.createEventually();
    const again = await doomed.create({ profile_id, runtime });
    const found = await sites.visit(rest, again, { found: "one" });
    expect([found.indexedDb, found.localStorage >= 19]).toEqual([20, true]);
    await destroy(again);
  });

  test("should come back whole after its worker was told to stop", { timeout }, async () => {
    const profile_id = await createProfile();
    const session = await doomed.create({ profile_id, runtime });
    await sites.visit(rest, session, { left: "one" });
    process.kill(doomed.workerPid, "SIGTERM");
    await expectEnd(session, "worker_lost");
    await doomed.createEventually();
    const again = await doomed.create({ profile_id, runtime });
    expect(await sites.visit(rest, again, { found: "one" })).toEqual(sites.whole);
    await destroy(again);
  });
});

test("should leave nothing behind", () => doomed.expectCleanEnd());
