import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { McpClient } from "../support/mcp-client.ts";
import { createHome, jsonOf, readCli, runCli, runInProcess, startCli } from "./program.ts";

let scene: CdpScene;
let env: { PILOTHOUSE_URL: string; PILOTHOUSE_API_KEY: string };

beforeAll(async () => {
  scene = await borrowCdpScene();
  env = { PILOTHOUSE_URL: scene.service.url, PILOTHOUSE_API_KEY: scene.service.key };
});
afterAll(() => scene?.[Symbol.asyncDispose]());

/** Runs a command in this process, and returns its JSON. */
const read = async (...args: string[]) => jsonOf(args, await runInProcess(args, env));

test("opens a session, and saves, reads and ends it", async () => {
  const directory = await createHome();
  const [opened] = await readCli(["open", scene.site.url("/form.html"), "--timeout", "600"], env);
  expect(opened).toMatchObject({ title: "Form", live_url: expect.stringMatching(/\/live#/) });
  const { id } = opened;
  expect(await read("sessions")).toContainEqual(expect.objectContaining({ id, status: "live" }));
  const [png, pdf] = [join(directory, "a.png"), join(directory, "a.pdf")];
  expect(await read("shot", id, png, "--full-page")).toEqual([{ file: png, bytes: expect.any(Number) }]);
  await read("pdf", id, pdf);
  expect((await readFile(png)).subarray(1, 4).toString()).toBe("PNG");
  expect((await readFile(pdf)).subarray(0, 4).toString()).toBe("%PDF");
  expect((await runInProcess(["read", id], env)).stdout).toContain("\n");
  const [{ url }] = await read("cdp", id);
  const browser = await chromium.connectOverCDP(url);
  expect(await browser.contexts()[0]?.pages()[0]?.title()).toBe("Form");
  await browser.close();
  expect(await read("end", id)).toEqual([{ id, status: "destroyed" }]);
  expect(await runInProcess(["read", id], env)).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("session-destroyed"),
  });
});

test("saves and reads a URL without a session that stays", async () => {
  const url = scene.site.url("/form.html");
  const { stdout, stderr, code } = await runCli(["read", url], env);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout.endsWith("\n")).toBe(true);
  const program = spawn("sh", ["-c", `node sdk/cli/src/main.ts shot ${url} - | head -c 4`], {
    env: { ...process.env, ...env },
  });
  const [chunk] = await program.stdout.toArray();
  expect(chunk.subarray(1, 4).toString()).toBe("PNG");
  const listed = await read("sessions");
  expect(listed.filter((session) => session.url === url)).toEqual([]);
});

test("prints the log of a session, and follows it until the session ends", async () => {
  const url = scene.site.url("/not-found");
  const [{ id }] = await read("open", url);
  const following = createInterface(startCli(["logs", "-f", id], env).stdout);
  const ended = once(following, "close");
  const lines: string[] = [];
  following.on("line", (line) => void lines.push(line));
  await once(following, "line");
  const first = { id: "1", type: "request", url, http_status: 404 };
  const [listed] = await read("logs", id);
  expect(listed).toMatchObject(first);
  const shown = await runInProcess(["logs", id], env, { isTerminal: true });
  expect(shown.stdout).toMatch(new RegExp(`^\\d{4}-\\S+Z request Document GET ${url} 404 \\d+ ms$`, "m"));
  await read("end", id);
  await ended;
  const stored = await read("logs", id);
  expect(stored.map(({ type }) => type)).toContain("navigation");
  expect(lines.map((line) => JSON.parse(line))).toEqual(stored);
  expect(await read("logs", id, "--follow")).toEqual(stored);
});

test("writes for people on a terminal", async () => {
  const run = (...args: string[]) => runInProcess(args, env, { isTerminal: true });
  const { stdout, stderr } = await run("open", scene.site.url("/form.html"));
  expect(stdout).toMatch(/^ses_\w+ {2}Form\nWatch it, and take control, at http:\S+\n$/);
  const [id = ""] = stdout.split(" ");
  expect(stderr).toBe(`It ends after 5 minutes without use, or by: pilothouse end ${id}\n`);
  expect((await run("sessions")).stdout).toMatch(new RegExp(`^${id} +live +\\S+ +\\S+$`, "m"));
  expect((await run("end", id)).stdout).toBe(`ended ${id}\n`);
});

test("serves an MCP client on standard input and output", async () => {
  const program = startCli(["mcp"], env);
  const client = await McpClient.connect(program);
  const started = await client.read("start_session");
  const [id = ""] = /ses_\w+/.exec(started) ?? [];
  onTestFinished(async () => void (await read("end", id)));
  expect(await client.read("navigate", { session_id: id, url: scene.site.url("/form.html") })).toContain("Form");
  const exited = new Promise((resolve) => program.once("exit", resolve));
  program.stdin.end();
  expect(await exited).toBe(0);
});

test("answers an MCP client whose key is wrong with the reason", async () => {
  const program = startCli(["mcp"], { ...env, PILOTHOUSE_API_KEY: "phk_wrong" });
  const message = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  program.stdin.write(`${JSON.stringify(message)}\n`);
  const [line] = await program.stdout.take(1).toArray();
  expect(JSON.parse(String(line))).toMatchObject({
    id: 1,
    error: { message: expect.stringContaining("/mcp did not respond") },
  });
});
