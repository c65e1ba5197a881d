import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { SessionEndedReason } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { SessionBrowser } from "../../workers/pool/session-browser.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { killBrowsers } from "../support/kill-browsers.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  // The test kills all browsers, and a prelaunched one could be assigned before its death is noticed.
  worker = await WorkerUnderTest.start([site.host]);
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

test.each(["headless-shell", "chromium"])("ends a session when its browser dies in %s", async (runtime) => {
  const session = await worker.open({ runtime });
  onTestFinished(() => session.destroy());
  await session.navigate({ url: site.url("/form.html") });
  const never = { condition: { case: "text" as const, value: { text: "never" } } };
  const running = session.wait(never).catch((failure) => failure);
  await session.state();
  killBrowsers();
  expect(await running).toMatchObject({ slug: "driver-error", extensions: { target_closed: true } });
  const { sessionId } = session.placement;
  const ends = worker.happenings.filter((happening) => happening.sessionId === sessionId).map(({ event }) => event);
  expect(ends).toMatchObject([{ case: "ended", value: { reason: SessionEndedReason.CRASHED } }]);
});

test("does not blame the launch for a create that fails after the browser has answered", async () => {
  const start = vi.spyOn(SessionBrowser.prototype, "start").mockRejectedValueOnce(new Error("no such device"));
  onTestFinished(() => start.mockRestore());
  const failure = await worker.open().catch((error: unknown) => error);
  expect(failure).toMatchObject({ slug: "driver-error" });
  expect(failure).not.toHaveProperty("extensions.launch_failed");
});
