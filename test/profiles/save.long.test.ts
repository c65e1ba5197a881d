import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { DoomedService } from "../chaos/doomed-service.ts";
import { descendantsOf } from "../support/process-list.ts";
import { type Found, ProfileSites } from "../support/profile-sites.ts";

/** Milliseconds for a test of several browsers on a busy machine. */
const timeout = 90_000;

/** Milliseconds for a worker to restart and save its leftover profiles. */
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

/** A profile of one test, and its successive sessions. */
class ProfileInUse {
  readonly #id: string;
  readonly #runtime: string;
  /** Path of the last session. */
  session = "";
  /** Number of the last visit, which the sites have stored. */
  #visits = 0;

  private constructor(id: string, runtime: string) {
    this.#id = id;
    this.#runtime = runtime;
  }

  /** Creates a profile, and visits all sites with its first session. The last session ends with the test. */
  static async create(runtime: string, visit: { isApart?: boolean } = {}): Promise<ProfileInUse> {
    const profile = new ProfileInUse(await createProfile(), runtime);
    onTestFinished(async () => {
      await rest(profile.session, undefined, { method: "DELETE" });
      await expect.poll(() => doomed.browsers.length).toBe(0);
    });
    await profile.visitAgain(visit);
    return profile;
  }

  /** Visits all sites with another session, and counts the values that the previous visit stored. */
  async visitAgain({ runtime = this.#runtime, isApart = false } = {}): Promise<Found> {
    await expect.poll(() => this.#tryCreate(runtime), { timeout: backWithin, interval: 100 }).toBe(201);
    const found = String(this.#visits);
    this.#visits += 1;
    return sites.visit(rest, this.session, { found, left: String(this.#visits), isApart });
  }

  async #tryCreate(runtime: string): Promise<number> {
    const { status, body } = await rest("/v1/sessions", { profile_id: this.#id, runtime });
    if (status === 201) this.session = `/v1/sessions/${body.id}`;
    return status;
  }

  async destroySession(): Promise<void> {
    expect((await rest(this.session, undefined, { method: "DELETE" })).status).toBe(204);
  }

  async savedAt(): Promise<string> {
    return (await rest(`/v1/profiles/${this.#id}`)).body.saved_at;
  }
}

describe.for([
  ["headless-shell", "chromium"],
  ["chromium", "headless-shell"],
] as const)("a profile of many sites, used by %s,", ([runtime, other]) => {
  test("is complete after a destroy", { timeout }, async () => {
    const profile = await ProfileInUse.create(runtime);
    await profile.destroySession();
    expect(await profile.visitAgain()).toEqual(sites.whole);
  });

  test("is complete after a page has crashed", { timeout }, async () => {
    const profile = await ProfileInUse.create(runtime);
    const renderers = descendantsOf(doomed.workerPid).filter(({ command }) => command.includes("--type=renderer"));
    await doomed.kill(...renderers.map(({ pid }) => pid));
    await profile.destroySession();
    expect(await profile.visitAgain()).toEqual(sites.whole);
  });

  test("is complete despite an endless script", { timeout }, async () => {
    const profile = await ProfileInUse.create(runtime);
    const url = doomed.site.url("/endless.html");
    await rest(`${profile.session}/navigate`, { url, timeout_ms: 500, wait_until: "commit" });
    await profile.destroySession();
    expect(await profile.visitAgain()).toEqual(sites.whole);
  });

  test("is complete after a shutdown of its worker", { timeout }, async () => {
    const profile = await ProfileInUse.create(runtime);
    process.kill(doomed.workerPid, "SIGTERM");
    await expectEnd(profile.session, "worker_drained");
    expect(await profile.visitAgain()).toEqual(sites.whole);
  });

  test("is nearly complete after a kill of the browser", { timeout }, async () => {
    const profile = await ProfileInUse.create(runtime, { isApart: true });
    await doomed.kill(...doomed.browsers.map(({ pid }) => pid));
    await expectEnd(profile.session, "crashed");
    const found = await profile.visitAgain();
    expect([found.indexedDb, found.localStorage >= count - 1]).toEqual([count, true]);
  });

  test("is nearly complete after a kill of the worker and its restart", { timeout }, async () => {
    const profile = await ProfileInUse.create(runtime, { isApart: true });
    const before = await profile.savedAt();
    await doomed.kill(doomed.workerPid);
    await expectEnd(profile.session, "worker_lost");
    await expect.poll(() => profile.savedAt(), { timeout: backWithin }).not.toBe(before);
    const found = await profile.visitAgain();
    expect([found.indexedDb, found.localStorage >= count - 1]).toEqual([count, true]);
  });

  test(`is complete in ${other}`, { timeout }, async () => {
    const profile = await ProfileInUse.create(runtime);
    await profile.destroySession();
    expect(await profile.visitAgain({ runtime: other })).toEqual(sites.whole);
  });
});

test("a profile of many sites is complete after its session has ended by itself", { timeout }, async () => {
  const profile_id = await createProfile();
  const session = await doomed.create({ profile_id, idle_timeout_seconds: 10 });
  await sites.visit(rest, session, { left: "before" });
  await expectEnd(session, "idle");
  const again = await doomed.create({ profile_id });
  expect(await sites.visit(rest, again, { found: "before" })).toEqual(sites.whole);
});

test("the service leaves no files or processes behind", () => doomed.expectCleanEnd());
