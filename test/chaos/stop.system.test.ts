import { expect, onTestFinished, test } from "vitest";
import { DoomedService } from "./doomed-service.ts";
import { readLedger } from "./session-ledger.ts";

async function startDoomed(): Promise<DoomedService> {
  const doomed = await DoomedService.start();
  onTestFinished(() => doomed[Symbol.asyncDispose]());
  return doomed;
}

const waitFor = (selector: string, timeout: number) => ({
  condition: { kind: "selector", selector },
  timeout_ms: timeout,
});

test("should let what runs finish when it is interrupted, then end everything, sessions as destroyed", async () => {
  const doomed = await startDoomed();
  const session = await doomed.create();
  const running = doomed.rest(`${session}/wait`, waitFor("#never", 8_000));
  // Nobody launches full Chromium ahead of the first create: as soon as there is any, it runs.
  const launched = doomed.rest("/v1/sessions", { runtime: "chromium" });
  launched.catch(() => undefined);
  await expect.poll(() => doomed.browsersOf("chromium").length, { timeout: 10_000, interval: 10 }).not.toBe(0);
  const ended = doomed.end("SIGINT");

  expect((await running).status).toBe(504);
  expect((await launched).status).toBe(201);
  expect(await ended).toBe(0);
  await doomed.expectGone();
  await doomed.restart();
  const sessions = [...(await readLedger(doomed)).values()];
  const destroyed = { status: "destroyed", endedReason: "destroyed", terminalEvents: ["session.completed"] };
  expect(sessions).toEqual([destroyed, destroyed]);
  await doomed.expectCleanEnd();
}, 120_000);

test("should end at once when it is told again", async () => {
  const doomed = await startDoomed();
  const session = await doomed.create();
  const running = doomed.rest(`${session}/wait`, waitFor("#never", 60_000));
  running.catch(() => undefined);
  await expect.poll(async () => (await doomed.rest(`${session}/state`)).status).toBe(200);
  const ended = doomed.end("SIGTERM");
  await expect.poll(() => fetch(`${doomed.service.url}/docs`).catch(() => "closed")).toBe("closed");
  const since = performance.now();
  // Those of the first two seconds may be the first one again.
  const telling = setInterval(() => doomed.service.gateway.kill("SIGTERM"), 200);
  expect(await ended).toBe(130);
  clearInterval(telling);
  // What runs has a minute, of which the first two seconds are over.
  expect(performance.now() - since).toBeLessThan(20_000);
  await expect(running).rejects.toThrow("fetch failed");
}, 120_000);
