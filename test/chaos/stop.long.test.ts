import { expect, test } from "vitest";
import { DoomedService } from "./doomed-service.ts";
import { readLedger } from "./session-ledger.ts";

const waitFor = (selector: string, timeout: number) => ({
  condition: { kind: "selector", selector },
  timeout_ms: timeout,
});

test("an interrupted service finishes running commands, then ends all its sessions as destroyed", async () => {
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
  const destroyed = { status: "destroyed", endedReason: "destroyed", terminalEvents: ["session.completed"] };
  expect(sessions).toEqual([destroyed, destroyed]);
  await doomed.expectCleanEnd();
}, 120_000);
