import type { Page } from "playwright";
import { connect as connectPuppeteer } from "puppeteer-core";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { BareClient } from "../support/cdp-proxy-scene.ts";
import { sees } from "../support/live-sights.ts";
import { isServed, type LiveKitScene, sceneMs, startLiveKitScene, testLive } from "../support/livekit-scene.ts";

let scene: LiveKitScene;
let session: string;
beforeAll(async () => {
  if (isServed) scene = await startLiveKitScene();
}, sceneMs);
afterAll(() => scene?.[Symbol.asyncDispose](), 60_000);
beforeEach(async () => {
  if (isServed) session = await scene.openRed();
});

testLive(
  "pages of a watched session cannot access the publishing extension, and CDP clients cannot see it",
  async () => {
    using client = await BareClient.connect(await scene.cdpUrl(session));
    const everything = { filter: [{}] };
    await client.send("Target.setDiscoverTargets", { discover: true, ...everything });
    const auto = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true };
    await client.send("Target.setAutoAttach", { ...auto, filter: [{ type: "page", exclude: true }, {}] });
    const { page: viewer } = await scene.watch(session);
    await sees(viewer, "red", "video");
    const { result } = await client.send("Target.getTargets", everything);
    expect(result.targetInfos.map(({ type }: { type: string }) => type)).toContain("page");
    // CDP messages contain no LiveKit token either.
    expect(JSON.stringify([result, client.received])).not.toMatch(/chrome-extension|"type":"other"|eyJhbGciOi/);
    const others = await connectPuppeteer({ browserWSEndpoint: await scene.cdpUrl(session), defaultViewport: null });
    expect((await others.pages()).map((each) => each.url())).toEqual([scene.sights.pageOf("red")]);
    await others.disconnect();

    const [inside, attached] = [await scene.pageOf(session), await client.attach()];
    const ids = extensionIds();
    expect(ids.length).toBeGreaterThan(0);
    for (const address of ids.flatMap((id) => [`${id}/capture.html`, `${id}/manifest.json`])) {
      const url = `chrome-extension://${address}`;
      expect(await scene.rest(`${session}/navigate`, { url })).toMatchObject({ status: 400 });
      const refusals = [
        await client.send("Page.navigate", { url }, attached),
        await client.send("Target.createTarget", { url }),
      ];
      for (const { error } of refusals) expect(error?.message).toContain("sessions cannot open local addresses");
      expect(await load(inside, url)).toEqual({ fetch: "error", img: "error", script: "error", runtime: "undefined" });
    }
    const seen = inside.context().pages();
    const urls = seen.flatMap((page) => page.frames().map((frame) => frame.url()));
    expect(urls.filter((url) => url.startsWith("chrome-extension"))).toEqual([]);
    await scene.sights.navigate(session, scene.sights.pageOf("blue"));
    await sees(viewer, "blue", "video");
  },
  120_000,
);

/** Results of a page's attempts to load an address. A frame and a window of it stay open for checks. */
function load(page: Page, url: string): Promise<Record<string, string>> {
  return page.evaluate(async (url) => {
    const element = (made: HTMLImageElement | HTMLScriptElement | HTMLIFrameElement) =>
      new Promise<string>((resolve) => {
        made.onload = () => resolve("load");
        made.onerror = () => resolve("error");
        made.src = url;
        document.body.append(made);
      });
    const fetched = fetch(url).then(
      () => "load",
      () => "error",
    );
    const img = await element(document.createElement("img"));
    const script = await element(document.createElement("script"));
    // The browser loads its error page instead.
    await element(document.createElement("iframe"));
    open(url);
    return { fetch: await fetched, img, script, runtime: typeof Reflect.get(globalThis, "chrome")?.runtime };
  }, url);
}

/** The ids of all extensions in the service's browsers, which are unknown to pages. */
function extensionIds(): string[] {
  const ids = scene
    .processes()
    .flatMap(({ command }) => /--allowlisted-extension-id=([a-p]{32})/.exec(command)?.[1] ?? []);
  return [...new Set(ids)];
}
