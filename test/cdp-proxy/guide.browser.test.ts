import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { blockNamesOf, blocksOf } from "../support/guide-blocks.ts";
import { longTest } from "../support/long-test.ts";
import { McpClient } from "../support/mcp-client.ts";

const run = promisify(execFile);

let scene: CdpScene;
beforeAll(async () => {
  scene = await borrowCdpScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const env = () => ({ ...process.env, PILOTHOUSE_URL: scene.service.url, PILOTHOUSE_API_KEY: scene.service.key });

test.each([...blocksOf("clients.md", "js")])("the guide's example for %s works", async (_heading, block) => {
  const program = block.replace("https://example.com/", scene.site.url("/plain.html"));
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { env: env() });
  expect(stdout).toBe("Plain\n");
});

test.each([...blocksOf("clients.md", "sh")])("the guide's commands to %s work", async (_heading, block) => {
  const { stdout } = await run("sh", ["-c", block], { env: env() });
  expect(JSON.parse(stdout)).toMatchObject({ url: expect.stringMatching(/^ws:.*\/cdp\/phc_/) });
});

longTest("the guide's settings connect chrome-devtools-mcp to the session", async () => {
  const { browser } = JSON.parse(blocksOf("clients.md", "json").get("chrome-devtools-mcp") ?? "").mcpServers;
  const url = await scene.cdpUrl(await scene.open());
  const args = browser.args.map((arg: string) => (arg.startsWith("wss:") ? url : arg));
  expect(args).toContain(url);
  const server = spawn(browser.command, args, { env: { ...env(), CI: "1" }, stdio: ["pipe", "pipe", "ignore"] });
  onTestFinished(() => void server.stdin.end());
  const agent = await McpClient.connect(server);
  const said = await agent.read("navigate_page", { pageId: 1, url: scene.site.url("/plain.html") });
  expect(said).toContain("1: Plain (");
});

test("every block of the guide is tested", () => {
  const here = ["Connect to a session (sh)", "Playwright (js)", "Puppeteer (js)", "chrome-devtools-mcp (json)"];
  const withPython = ["browser-use (python)"];
  expect(blockNamesOf("clients.md").sort()).toEqual([...here, ...withPython].sort());
});
