import { afterAll, beforeAll, test } from "vitest";
import { borrowLendScene, type LendScene } from "../support/lend-scene.ts";
import { playwright, puppeteer, runWhole } from "./whole-client.ts";

const mib = 2 ** 20;

let scene: LendScene;
beforeAll(async () => {
  scene = await borrowLendScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

test("Playwright does all that a client does while REST drives, and leaves a Chromium as it was", async () => {
  await runWhole(scene, "chromium", playwright(2 * mib));
}, 60_000);

test("Puppeteer does all that a client does while REST drives, and leaves a headless shell as it was", async () => {
  await runWhole(scene, "headless-shell", puppeteer);
}, 60_000);
