import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { CaptureKind } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { killRenderers } from "../support/kill-browsers.ts";
import { runtimes } from "../support/runtimes.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

const tap = (selector: string) => ({ action: { case: "tap", value: { selector } } }) as const;
const text = (value: string) => ({ condition: { case: "text", value: { text: value } } }) as const;
const crashed = { slug: "driver-error", extensions: { target_crashed: true } };

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  // A heap that a page fills in a second; Chromium's own limit is 4 GiB.
  const browserFlags = ["--js-flags=--max-old-space-size=16"];
  // The test kills all renderers, and those of a prelaunched browser would belong to the next session.
  worker = await WorkerUnderTest.start([site.host], { browserFlags });
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

describe.each(runtimes)("a renderer of %s", { timeout: 60_000 }, (runtime) => {
  async function open(): Promise<DrivenSession> {
    const session = await worker.open({ runtime });
    onTestFinished(() => session.destroy());
    await session.navigate({ url: site.url("/endless.html") });
    return session;
  }

  async function expectToGoOn(session: DrivenSession): Promise<void> {
    const { title, httpStatus } = await session.navigate({ url: site.url("/plain.html") });
    expect([title, httpStatus]).toEqual(["Plain", 200]);
    expect((await session.state()).pages).toMatchObject([{ id: "page_1", active: true, crashed: false }]);
  }

  test("answers driver-error after a crash until the next navigate", async () => {
    const session = await open();
    killRenderers();
    await vi.waitUntil(async () => (await session.state()).pages[0]?.crashed, { timeout: 10_000 });
    await expect(session.interact(tap("#later"))).rejects.toMatchObject(crashed);
    await expect(session.wait(text("x"))).rejects.toMatchObject(crashed);
    await expect(session.capture({ kind: CaptureKind.SCREENSHOT })).rejects.toMatchObject(crashed);
    await expectToGoOn(session);
  });

  test("ends the running command with driver-error when it runs out of memory", async () => {
    const session = await open();
    await session.interact(tap("#heap"));
    const waiting = session.wait({ ...text("never"), timeoutMs: 25_000 });
    await expect(waiting).rejects.toMatchObject(crashed);
    await expect(session.interact(tap("#later"))).rejects.toMatchObject(crashed);
    await expectToGoOn(session);
  });

  test("ends a navigate with driver-error when it runs out of memory", async () => {
    const session = await open();
    const failed = session.navigate({ url: site.url("/heap.html"), timeoutMs: 25_000 });
    await expect(failed).rejects.toMatchObject(crashed);
    await expectToGoOn(session);
  });
});
