import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWorkshop, type Workshop } from "../clients/generated-client.ts";
import { type CdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { type CallTool, doTask } from "./journey.ts";

/** Calls the tools named by lines of its input, with Python's client. */
const program = `
import asyncio, json, sys
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def call(client, line):
    asked = json.loads(line)
    result = await client.call_tool(asked["name"], asked["args"])
    print(json.dumps({
        "id": asked["id"],
        "isError": bool(result.is_error),
        "structured": result.structured_content,
        "types": [part.type for part in result.content],
        "text": "\\n".join(getattr(part, "text", "") for part in result.content),
    }), flush=True)

async def main():
    url, key = sys.argv[1:]
    http = httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=60)
    async with Client(streamable_http_client(url, http_client=http)) as client:
        calls = set()
        while line := await asyncio.to_thread(sys.stdin.readline):
            calls.add(asyncio.create_task(call(client, line)))

asyncio.run(main())
`;

let workshop: Workshop;
let scene: CdpScene;
beforeAll(async () => {
  workshop = await openWorkshop("venv/bin");
  scene = await startCdpScene();
}, 180_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await workshop?.[Symbol.asyncDispose]();
}, 60_000);

/** Returns a function that calls tools by a process, which answers lines with lines. */
function callBy(client: ChildProcess): CallTool {
  const pending = new Map<number, (output: Awaited<ReturnType<CallTool>>) => void>();
  if (!client.stdout) throw new Error("the client's output is not piped");
  createInterface({ input: client.stdout }).on("line", (line) => {
    const output = JSON.parse(line);
    pending.get(output.id)?.(output);
  });
  let calls = 0;
  return (name, args = {}) => {
    calls += 1;
    const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<CallTool>>>();
    pending.set(calls, resolve);
    client.stdin?.write(`${JSON.stringify({ id: calls, name, args })}\n`);
    return promise;
  };
}

test("Python's client does a task and hands it to a person in the middle", async () => {
  const { url, key } = scene.service;
  await workshop.run("python3", "-m", "venv", "venv");
  await workshop.run("pip", "install", "--quiet", "--disable-pip-version-check", "mcp==2.3.0");
  await writeFile(join(workshop.directory, "client.py"), program);
  const python = join(workshop.directory, "venv/bin/python");
  const client = spawn(python, ["client.py", `${url}/mcp`, key], {
    cwd: workshop.directory,
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    await doTask(callBy(client), url, scene.site.url("/login.html"));
  } finally {
    client.kill();
    await once(client, "exit");
  }
}, 600_000);

test("the Inspector's command line lists and calls tools", async () => {
  const { url, key } = scene.service;
  await workshop.run("npm", "install", "--silent", "--ignore-scripts", "@modelcontextprotocol/inspector@2.12.0");
  const inspect = async (...args: string[]) => {
    const target = [`${url}/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${key}`];
    const { stdout } = await workshop.run("npx", "mcp-inspector", "--cli", ...target, ...args);
    return JSON.parse(stdout);
  };
  const { tools } = await inspect("--method", "tools/list");
  expect(tools.map(({ name }: { readonly name: string }) => name)).toContain("start_session");
  const called = await inspect("--method", "tools/call", "--tool-name", "list_sessions");
  expect(called.structuredContent).toEqual({ sessions: [] });
}, 600_000);
