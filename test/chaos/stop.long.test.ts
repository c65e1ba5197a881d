import { expect, test } from "vitest";
import { DoomedService } from "./doomed-service.ts";
import { readLedger } from "./session-ledger.ts";

const waitFor = (selector: string, timeout: number) => ({
  condition: { kind: "selector", selector },
  timeout_ms: timeout,
});

test("an interrupted service finishes running commands, then ends all its sessions as drained", async () => {
  await using doomed = await DoomedService.start();
  const session = await doomed.create();
  const running = doomed.rest(`${session}/wait`, waitFor("#never", 8_000));
  // Full Chromium is not launched ahead of the first create, so its first process belongs to that create.
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
  const drained = { status: "destroyed", endedReason: "worker_drained", terminalEvents: ["session.completed"] };
  expect(sessions).toEqual([drained, drained]);
  await doomed.expectCleanEnd();
}, 120_000);

test("a stopping service exits at once on a second signal", async () => {
  await using doomed = await DoomedService.start();
  const session = await doomed.create();
  const running = doomed.rest(`${session}/wait`, waitFor("#never", 60_000));
  running.catch(() => undefined);
  await expect.poll(async () => (await doomed.rest(`${session}/state`)).status).toBe(200);
  const ended = doomed.end("SIGTERM");
  await expect.poll(() => fetch(`${doomed.service.url}/favicon.ico`).catch(() => "closed")).toBe("closed");
  const since = performance.now();
  // Signals of the first two seconds may count as repetitions of the first one.
  const signalling = setInterval(() => doomed.service.supervisor.kill("SIGTERM"), 200);
  expect(await ended).toBe(130);
  clearInterval(signalling);
  // Running commands have a minute, of which two seconds have passed.
  expect(performance.now() - since).toBeLessThan(20_000);
  await expect(running).rejects.toThrow("fetch failed");
}, 120_000);
