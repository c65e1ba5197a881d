import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { blocksOf } from "../support/guide-blocks.ts";
import { cdpUse, devtoolsMcp, playwright, puppeteer, runWhole } from "./whole-client.ts";

const run = promisify(execFile);

/** Playwright sends only files below 50 MiB to a browser on another machine. */
const longestSent = 50_000_000;

let directory: string;
let python: string;
let scene: CdpScene;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pilothouse-cdp-use-"));
  python = join(directory, "bin", "python");
  await run("python3", ["-m", "venv", directory]);
  await run(join(directory, "bin", "pip"), ["install", "--quiet", "--disable-pip-version-check", "cdp-use==1.4.5"]);
  scene = await startCdpScene();
}, 300_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

test("the guide's example for browser-use's CDP client works", async () => {
  const { service, site } = scene;
  const block = blocksOf("clients.md", "python").get("browser-use") ?? "";
  const program = block.replace("https://example.com/", site.url("/plain.html"));
  const env = { ...process.env, PILOTHOUSE_URL: service.url, PILOTHOUSE_API_KEY: service.key };
  const { stdout } = await run(python, ["-c", program], { env });
  expect(stdout).toBe("Plain\n");
});

describe.each(["headless-shell", "chromium"])("in %s", (runtime) => {
  const clients = {
    "Playwright, with a file of 50 MB": () => playwright(longestSent),
    Puppeteer: () => puppeteer,
    "browser-use's client": () => cdpUse(python),
    "chrome-devtools-mcp": () => devtoolsMcp,
  };
  test.each(Object.entries(clients))(
    "%s exercises all client features and leaves the session unchanged",
    async (_name, client) => {
      await runWhole(scene, runtime, client());
    },
    240_000,
  );
});
