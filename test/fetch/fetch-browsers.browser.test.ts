import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FetchFormat } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { plainDevice } from "../../workers/pages/device/device.ts";
import { type FetchScene, startFetchScene } from "../support/fetch-scene.ts";
import { killBrowsers } from "../support/kill-browsers.ts";
import { longTest } from "../support/long-test.ts";

let scene: FetchScene;

beforeEach(async () => {
  scene = await startFetchScene(2);
});
afterEach(() => scene[Symbol.asyncDispose]());

test("fetches of one browser run at once, and the browser is kept for other fetches of its account", async () => {
  const together = await Promise.all([
    scene.fetchBy("b1", "one"),
    scene.fetchBy("b1", "one"),
    scene.fetchBy("b1", "one"),
  ]);
  expect(together.map(({ complete }) => complete)).toEqual([true, true, true]);
  expect([scene.taken, scene.fetches.busy, scene.fetches.spare]).toEqual([1, 0, 1]);
  const script = "document.body.textContent = [screen.width, navigator.language].join()";
  const url = scene.site.url(`/script.html#${encodeURIComponent(script)}`);
  const { markdown } = await scene.fetchBy("b2", "one", {
    url,
    archetype: "pixel-7",
    locale: "de-AT",
    formats: [FetchFormat.MARKDOWN],
  });
  expect(markdown).toMatch(/^\d{3},de-AT$/);
  expect(scene.taken).toBe(1);
  await scene.fetchBy("b3", "other");
  expect([scene.taken, scene.fetches.spare]).toEqual([2, 2]);
});

test("a document that changes after its load is read once it is idle", async () => {
  const script = `
    let left = 6;
    const timer = setInterval(() => {
      document.body.append(" part" + left);
      left -= 1;
      if (left === 0) clearInterval(timer);
    }, 150);`;
  const url = scene.site.url(`/script.html#${encodeURIComponent(script)}`);
  const { markdown } = await scene.fetchBy("b1", "one", { url, formats: [FetchFormat.MARKDOWN] });
  expect(markdown).toMatch(/part6 .*part1$/);
});

longTest("pages become Markdown though the page that converts for their browser hangs", async () => {
  const take = vi.spyOn(scene.pool, "take");
  const readAs = async (browserId: string) =>
    (await scene.fetchBy(browserId, "one", { formats: [FetchFormat.MARKDOWN] })).markdown;
  const markdown = await readAs("b1");
  const browser = await take.mock.results[0]?.value;
  browser.pages.active.cdp.send("Runtime.evaluate", { expression: "for (;;);" }).catch(() => undefined);
  expect([markdown, await readAs("b2"), await readAs("b3")]).toEqual(
    Array(3).fill(expect.stringMatching(/^# How tides/)),
  );
  expect(scene.taken).toBe(1);
});

test("a kept browser gives its slot to a session", async () => {
  await Promise.all([scene.fetchBy("b1", "one"), scene.fetchBy("b2", "other")]);
  expect([scene.fetches.spare, scene.pool.free, scene.slots.free]).toEqual([2, 2, 0]);
  const signal = AbortSignal.timeout(20_000);
  const browser = await scene.pool.take({
    runtime: "headless-shell",
    device: plainDevice(),
    signal,
    makeProfile: undefined,
  });
  expect([scene.fetches.spare, scene.pool.free]).toEqual([1, 1]);
  await browser.dispose();
});

test("fetches fail with the cause when their browser crashes, and later ones run", async () => {
  const running = scene.fetchBy("b1", "one", { url: scene.site.url("/silent") });
  const failed = expect(running).rejects.toMatchObject({
    slug: "driver-error",
    extensions: { target_closed: true },
    detail: "the browser crashed during the fetch: try again",
  });
  await expect.poll(() => scene.site.requests, { timeout: 20_000 }).toContain("GET /silent");
  killBrowsers();
  await failed;
  expect((await scene.fetchBy("b1", "one")).complete).toBe(true);
  expect(scene.taken).toBe(2);
});

test("a fetch ends with its client, and its browser is kept", async () => {
  const leaving = new AbortController();
  const running = scene.fetches.fetch(scene.commandOf("b1", "one", { url: scene.site.url("/silent") }), leaving.signal);
  await expect.poll(() => scene.site.requests, { timeout: 20_000 }).toContain("GET /silent");
  leaving.abort(new Error("the client left"));
  await expect(running).rejects.toThrow("the client left");
  expect([scene.fetches.busy, scene.fetches.spare]).toEqual([0, 1]);
});
