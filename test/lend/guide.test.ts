import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocksOf } from "../support/guide-blocks.ts";
import { type LendScene, startLendScene } from "../support/lend-scene.ts";

const run = promisify(execFile);

let scene: LendScene;
beforeAll(async () => {
  scene = await startLendScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const env = () => ({ ...process.env, PILOTHOUSE_URL: scene.service.url, PILOTHOUSE_KEY: scene.service.key });

test.each([...blocksOf("clients.md", "js")])("the guide's example for %s works", async (_heading, block) => {
  const program = block.replace("https://example.com/", scene.site.url("/plain.html"));
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { env: env() });
  expect(stdout).toBe("Plain\n");
});

test.each([...blocksOf("clients.md", "sh")])("the guide's commands to %s work", async (_heading, block) => {
  const { stdout } = await run("sh", ["-c", block], { env: env() });
  expect(JSON.parse(stdout)).toMatchObject({ url: expect.stringMatching(/^ws:.*\/cdp\/phc_/) });
});

test("every block of the guide is tested", () => {
  expect([...blocksOf("clients.md", "js").keys()]).toEqual(["Playwright", "Puppeteer"]);
  expect([...blocksOf("clients.md", "sh").keys()]).toEqual(["Connect"]);
});
