import { afterAll, beforeAll, expect, test } from "vitest";
import { isStillThere } from "../support/process-list.ts";
import { DoomedService } from "./doomed-service.ts";
import { entryOf } from "./session-ledger.ts";

let doomed: DoomedService;

beforeAll(async () => {
  doomed = await DoomedService.start();
});

afterAll(() => doomed[Symbol.asyncDispose]());

test("should go on with its sessions when a gateway takes over within a lease from one that was killed", async () => {
  const session = await doomed.create();
  const { answer } = await doomed.beginNavigation(session);
  const { workerPid, postmasterPid, browsers } = doomed;
  await doomed.replaceGateway();
  await expect(answer).rejects.toThrow("fetch failed");

  expect([doomed.workerPid, doomed.postmasterPid]).toEqual([workerPid, postmasterPid]);
  const again = await doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") });
  expect(again).toMatchObject({ status: 200, body: { http_status: 200 } });
  expect(browsers.filter(isStillThere)).toEqual(browsers);
  expect(await entryOf(doomed, session)).toMatchObject({ status: "live", terminalEvents: [] });
}, 120_000);

test("should start again after gateway, worker and PostgreSQL were killed at once", async () => {
  const session = await doomed.create();
  const { browsers } = doomed;
  await doomed.killGateway(doomed.workerPid, doomed.postmasterPid);
  await doomed.restart();
  await doomed.createEventually();
  expect(await entryOf(doomed, session)).toEqual({
    status: "errored",
    endedReason: "worker_lost",
    terminalEvents: ["session.failed"],
  });
  expect(browsers.filter(isStillThere)).toEqual([]);
}, 120_000);

test("should leave nothing behind", async () => {
  await doomed.expectCleanEnd();
});
