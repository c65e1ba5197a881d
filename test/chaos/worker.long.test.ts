import { expect, test } from "vitest";
import { describeProcess, isStillThere } from "../support/process-list.ts";
import { DoomedService, verdict } from "./doomed-service.ts";
import { entryOf } from "./session-ledger.ts";

/** Milliseconds until a hanging worker is replaced: its lease plus the start of a process. */
const replacedWithin = 15_000;

test("a worker that hangs is replaced, and its sessions are recorded as lost", async () => {
  await using doomed = await DoomedService.start();
  const session = await doomed.create();
  const { workerPid, browsers } = doomed;
  process.kill(workerPid, "SIGSTOP");
  await expect.poll(() => doomed.workerPid, { timeout: replacedWithin, interval: 50 }).not.toBe(workerPid);
  expect(describeProcess(workerPid)).toBeUndefined();
  expect(await entryOf(doomed, session)).toEqual({
    status: "errored",
    endedReason: "worker_lost",
    terminalEvents: ["session.failed"],
  });
  await doomed.createEventually();
  await expect.poll(() => browsers.filter(isStillThere), { timeout: verdict }).toEqual([]);
}, 60_000);
