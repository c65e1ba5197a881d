import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { longDescribe, longTest } from "../support/long-test.ts";
import { isStillThere } from "../support/process-list.ts";
import { ProfileSites } from "../support/profile-sites.ts";
import { browserKillTests } from "./browser-kills.ts";
import { cdpClientTests } from "./cdp-clients.ts";
import { DoomedService, inTime, verdict } from "./doomed-service.ts";
import { processKillTests } from "./process-kills.ts";
import { entryOf, faultsOf, readLedger } from "./session-ledger.ts";

let doomed: DoomedService;

beforeAll(async () => {
  doomed = await DoomedService.start({ EGRESS_ALLOW: "127.0.0.0/8" });
});

afterAll(() => doomed[Symbol.asyncDispose]());

describe("browsers and PostgreSQL", () => browserKillTests(() => doomed));
describe("processes", () => processKillTests(() => doomed));

test("a killed worker is restarted, its sessions end, and its commands and launches are answered", async () => {
  const session = await doomed.create();
  const other = await doomed.create();
  const { answer } = await doomed.beginNavigation(session);
  const launches = [doomed.rest("/v1/sessions", {}), doomed.rest("/v1/sessions", { runtime: "chromium" })];
  // Full Chromium is not launched ahead of the first create, so its first process belongs to that create.
  await expect.poll(() => doomed.browsersOf("chromium").length, { timeout: 10_000, interval: 5 }).not.toBe(0);
  const { browsers, workerPid } = doomed;
  await doomed.kill(workerPid);

  // The connection breaks first. Only the fleet can determine whether the worker has ended.
  const { body } = await inTime(answer);
  expect(body).toMatchObject({ status: 410, ended_reason: "worker_lost" });
  for (const launch of launches) {
    const { status, body: created } = await inTime(launch);
    if (status !== 201)
      expect(created).toMatchObject({
        status: 500,
        detail: expect.stringMatching(/could not be reached, or was lost/),
      });
  }
  for (const path of [session, other]) {
    expect((await doomed.rest(path)).body).toMatchObject({ status: 410, ended_reason: "worker_lost" });
    expect(await entryOf(doomed, path)).toEqual({
      status: "errored",
      endedReason: "worker_lost",
      terminalEvents: ["session.failed"],
    });
  }
  await expect.poll(() => browsers.filter(isStillThere), { timeout: verdict }).toEqual([]);
  await expect.poll(() => doomed.workerPid, { timeout: verdict }).not.toBe(workerPid);
}, 60_000);

longTest("a session can be created and controlled on the restarted worker", async () => {
  const session = await doomed.create();
  const answer = await doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") });
  expect(answer).toMatchObject({ status: 200, body: { http_status: 200 } });
});

longTest("a command to a session of a killed worker reports the loss before the fleet has detected it", async () => {
  const session = await doomed.create();
  await doomed.kill(doomed.workerPid);
  const { body } = await inTime(doomed.rest(`${session}/navigate`, { url: "about:blank" }));
  expect(body).toMatchObject({ status: 410, ended_reason: "worker_lost" });
  await doomed.destroy(await doomed.createEventually());
});

longDescribe("CDP", () => cdpClientTests(() => doomed));

test("storage of a profile's sites is restored in the next session, also in the other runtime", async () => {
  const sites = await new ProfileSites(3).start();
  onTestFinished(() => sites.stop());
  const rest: DoomedService["rest"] = (path, body, init) => doomed.rest(path, body, init);
  const { body: profile } = await rest("/v1/profiles", { name: "Three sites" });
  let found = "";
  for (const runtime of ["headless-shell", "chromium", "headless-shell"]) {
    const session = await doomed.create({ profile_id: profile.id, runtime });
    const left = `${found}+`;
    const seen = await sites.visit(rest, session, { found, left });
    if (found !== "") expect(seen).toEqual(sites.whole);
    expect((await rest(session, undefined, { method: "DELETE" })).status).toBe(204);
    found = left;
  }
}, 120_000);

test("the service leaves nothing behind, and each session has one terminal event", async () => {
  expect(faultsOf(await readLedger(doomed), [])).toEqual([]);
  await doomed.expectCleanEnd();
});
