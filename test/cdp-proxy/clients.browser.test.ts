import { afterAll, beforeAll, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { longTest } from "../support/long-test.ts";
import { playwright, puppeteer, runWhole } from "./whole-client.ts";

const mib = 2 ** 20;

let scene: CdpScene;
beforeAll(async () => {
  scene = await borrowCdpScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

longTest(
  "Playwright exercises all client features alongside REST and leaves Chromium unchanged",
  async () => {
    await runWhole(scene, "chromium", playwright(2 * mib));
  },
  60_000,
);

test("Puppeteer exercises all client features alongside REST and leaves headless shell unchanged", async () => {
  await runWhole(scene, "headless-shell", puppeteer);
}, 60_000);
