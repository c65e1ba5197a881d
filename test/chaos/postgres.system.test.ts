import { afterAll, beforeAll, expect, test } from "vitest";
import { DoomedService } from "./doomed-service.ts";
import { entryOf, faultsOf, readLedger } from "./session-ledger.ts";

/** Milliseconds until a killed PostgreSQL has recovered: its processes must exit and its log is replayed. */
const recovery = 40_000;

let doomed: DoomedService;

beforeAll(async () => {
  doomed = await DoomedService.start();
});

afterAll(() => doomed[Symbol.asyncDispose]());

test("sessions outlive a killed PostgreSQL, and can be created again after its automatic restart", async () => {
  const session = await doomed.create();
  const navigate = () => doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") });
  expect((await navigate()).status).toBe(200);
  const { postmasterPid } = doomed;
  await doomed.kill(postmasterPid);

  expect((await navigate()).status).toBe(200);
  const { status, headers, body } = await doomed.rest("/v1/sessions", {});
  if (status !== 201) {
    expect([status, body.type, headers.get("retry-after")]).toEqual([500, expect.stringMatching(/internal$/), "1"]);
  }
  await expect
    .poll(async () => (await doomed.rest("/v1/sessions", {})).status, { timeout: recovery, interval: 200 })
    .toBe(201);
  expect(doomed.postmasterPid).not.toBe(postmasterPid);
  expect((await navigate()).status).toBe(200);
  expect(await entryOf(doomed, session)).toMatchObject({ status: "live", terminalEvents: [] });
}, 90_000);

test("the service leaves nothing behind, and each session has one terminal event", async () => {
  expect(faultsOf(await readLedger(doomed), [])).toEqual([]);
  await doomed.expectCleanEnd();
});
