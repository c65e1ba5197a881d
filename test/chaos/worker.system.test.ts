import { afterAll, beforeAll, expect, test } from "vitest";
import { isStillThere } from "../support/process-list.ts";
import { DoomedService, inTime, verdict } from "./doomed-service.ts";
import { entryOf, faultsOf, readLedger } from "./session-ledger.ts";

let doomed: DoomedService;

beforeAll(async () => {
  doomed = await DoomedService.start();
});

afterAll(() => doomed[Symbol.asyncDispose]());

test("should end the sessions of a killed worker, answer what ran and what was launched, and start it again", async () => {
  const session = await doomed.create();
  const other = await doomed.create();
  const { answer } = await doomed.beginNavigation(session);
  const launches = [doomed.rest("/v1/sessions", {}), doomed.rest("/v1/sessions", { runtime: "chromium" })];
  // None is launched ahead before one was asked for: as soon as there is any, that create runs.
  await expect.poll(() => doomed.browsersOf("chromium").length, { timeout: 10_000, interval: 5 }).not.toBe(0);
  const { browsers, workerPid } = doomed;
  await doomed.kill(workerPid);

  // The connection breaks first, and only the fleet can tell whether that was the worker's end.
  const { body } = await inTime(answer);
  expect(body).toMatchObject({ status: 410, ended_reason: "worker_lost" });
  for (const launch of launches) {
    const { status, body: created } = await inTime(launch);
    if (status !== 201)
      expect(created).toMatchObject({ status: 503, type: expect.stringMatching(/capacity-unavailable$/) });
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

test("should create and drive a session on the worker that was started again", async () => {
  const session = await doomed.create();
  const answer = await doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") });
  expect(answer).toMatchObject({ status: 200, body: { http_status: 200 } });
});

test("should say that a session of a killed worker is lost to a command that comes before the fleet knows", async () => {
  const session = await doomed.create();
  await doomed.kill(doomed.workerPid);
  const { body } = await inTime(doomed.rest(`${session}/navigate`, { url: "about:blank" }));
  expect(body).toMatchObject({ status: 410, ended_reason: "worker_lost" });
});

test("should leave nothing behind, and each session with its one terminal event", async () => {
  expect(faultsOf(await readLedger(doomed), [])).toEqual([]);
  await doomed.expectCleanEnd();
});
