import { expect, test } from "vitest";
import { DoomedService } from "./doomed-service.ts";
import { readLedger } from "./session-ledger.ts";

const waitFor = (selector: string, timeout: number) => ({
  condition: { kind: "selector", selector },
  timeout_ms: timeout,
});

test("should let what runs finish when it is interrupted, then end everything, sessions as destroyed", async () => {
  await using doomed = await DoomedService.start();
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
