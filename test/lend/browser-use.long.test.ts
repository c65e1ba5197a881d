import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocksOf } from "../support/guide-blocks.ts";
import { type LendScene, startLendScene } from "../support/lend-scene.ts";

const run = promisify(execFile);

let directory: string;
let scene: LendScene | undefined;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pilothouse-cdp-use-"));
  await run("python3", ["-m", "venv", directory]);
  await run(join(directory, "bin", "pip"), ["install", "--quiet", "--disable-pip-version-check", "cdp-use==1.4.5"]);
  scene = await startLendScene();
}, 300_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

test("the guide's example for browser-use's client of CDP works", async () => {
  if (!scene) throw new Error("there is no scene");
  const { service, site } = scene;
  const block = blocksOf("clients.md", "python").get("browser-use") ?? "";
  const program = block.replace("https://example.com/", site.url("/plain.html"));
  const env = { ...process.env, PILOTHOUSE_URL: service.url, PILOTHOUSE_KEY: service.key };
  const { stdout } = await run(join(directory, "bin", "python"), ["-c", program], { env });
  expect(stdout).toBe("Plain\n");
});
