import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { pipeBounds, pipeTotals } from "../../workers/cdp/pipe-bounds.ts";
import { consoleBounds } from "../../workers/pages/console-tap.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { longTest, withLong } from "../support/long-test.ts";
import { runtimes } from "../support/runtimes.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  // A busy machine does not reach the default limits.
  pipeBounds.messagesPerSecond = 300;
  consoleBounds.linesPerSecond = 100;
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host]);
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

async function open(runtime: string): Promise<DrivenSession> {
  const session = await worker.open({ runtime });
  onTestFinished(() => session.destroy());
  return session;
}

/** Watches a session to its end and collects its console, which browsers report only to watchers. */
function watch(session: DrivenSession): readonly string[] {
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const lines: string[] = [];
  const read = async () => {
    for await (const { type, data } of session.watch(over.signal)) {
      if (type === "session.console") lines.push(String(data?.text));
    }
  };
  read().catch(() => undefined);
  return lines;
}

const tap = (session: DrivenSession, selector: string) =>
  session.interact({ action: { case: "tap", value: { selector } } });

describe.each(runtimes)("a page of %s", (runtime) => {
  test("loses its giant messages while its session continues", { timeout: 60_000 }, async () => {
    const session = await open(runtime);
    watch(session);
    await session.navigate({ url: site.url("/flood.html?megabytes=12") });
    for (const selector of withLong(["#log", "#request"], ["#throw", "#reject"])) {
      const { skipped } = pipeTotals;
      await tap(session, selector);
      await expect.poll(() => pipeTotals.skipped, { timeout: 10_000, message: selector }).toBeGreaterThan(skipped);
    }
    expect(await session.navigate({ url: site.url("/plain.html") })).toMatchObject({ title: "Plain", httpStatus: 200 });
  });

  test("is paused when it writes without end, while others continue", { timeout: 60_000 }, async () => {
    const [session, other] = [await open(runtime), await open(runtime)];
    watch(session);
    await session.navigate({ url: site.url("/flood.html") });
    await other.navigate({ url: site.url("/form.html") });
    const { waits } = pipeTotals;
    await tap(session, "#lines");
    await expect.poll(() => pipeTotals.waits, { timeout: 10_000 }).toBeGreaterThan(waits + 2);
    await tap(other, "button");
    expect(await other.navigate({ url: site.url("/plain.html") })).toMatchObject({ title: "Plain" });
  });

  longTest(
    "is muted for a second when it logs more lines than allowed",
    async () => {
      const session = await open(runtime);
      const lines = watch(session);
      await session.navigate({ url: site.url("/flood.html") });
      await tap(session, "#chat");
      const isNotice = (line: string) => line.includes("are dropped");
      await expect.poll(() => lines.filter(isNotice).length, { timeout: 20_000 }).toBeGreaterThanOrEqual(3);
      const first = lines.findIndex(isNotice);
      const received = lines.slice(first + 1).findIndex(isNotice);
      expect(received).toBeGreaterThan(0);
      expect(received).toBeLessThanOrEqual(consoleBounds.linesPerSecond);
      expect(await session.navigate({ url: site.url("/plain.html") })).toMatchObject({ title: "Plain" });
    },
    60_000,
  );
});
