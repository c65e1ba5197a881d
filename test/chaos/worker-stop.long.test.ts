import { expect, onTestFinished, test } from "vitest";
import { describeProcess, isStillThere } from "../support/process-list.ts";
import { DoomedService, inTime, verdict } from "./doomed-service.ts";
import { entryOf } from "./session-ledger.ts";

test("a worker that is stopped ends its sessions as drained and removes its browsers", async () => {
  const doomed = await DoomedService.start();
  onTestFinished(() => doomed[Symbol.asyncDispose]());
  const sessions = [await doomed.create(), await doomed.create({ runtime: "chromium" })];
  const { browsers, workerPid } = doomed;
  const [busy = ""] = sessions;
  const { answer } = await doomed.beginNavigation(busy);
  process.kill(workerPid, "SIGTERM");

  const { body } = await inTime(answer);
  expect(body).toMatchObject({ status: 410, ended_reason: "worker_drained" });
  for (const session of sessions) {
    const after = await inTime(doomed.rest(`${session}/navigate`, { url: "about:blank" }));
    expect(after.body).toMatchObject({ status: 410, ended_reason: "worker_drained" });
    const entry = { status: "destroyed", endedReason: "worker_drained", terminalEvents: ["session.completed"] };
    expect(await entryOf(doomed, session)).toEqual(entry);
  }
  await expect.poll(() => browsers.filter(isStillThere), { timeout: verdict }).toEqual([]);
  await expect.poll(() => describeProcess(workerPid), { timeout: verdict }).toBeUndefined();
  await doomed.createEventually();
  await doomed.expectCleanEnd();
}, 90_000);
