import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorkshop, type Workshop } from "../clients/generated-client.ts";
import { type CdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { type Asked, LlmProvider, type Said } from "../support/llm-provider.ts";
import { McpClient } from "../support/mcp-client.ts";
import { toolPrograms } from "./tool-programs.ts";

const packages = {
  npm: ["playwright@1.65.1", "puppeteer-core@24.43.1", "@browserbasehq/stagehand@3.7.3", "@playwright/mcp@0.0.83"],
  pip: ["playwright==1.65.0", "browser-use==0.11.13", "pydantic-settings==2.11.0", "crawl4ai==0.9.5"],
};

let workshop: Workshop;
let scene: CdpScene;
let provider: LlmProvider;
beforeAll(async () => {
  workshop = await openWorkshop("venv/bin");
  const { run } = workshop;
  await run("npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", ...packages.npm);
  await run("python3", "-m", "venv", "venv");
  await run("pip", "install", "--quiet", "--disable-pip-version-check", ...packages.pip);
  provider = await new LlmProvider().start();
  scene = await startCdpScene();
}, 900_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
  await workshop?.[Symbol.asyncDispose]();
});

/** Returns the address for a tool and a function that waits for the end of the only session created by it. */
function addressFor(tool: string, scheme: "ws" | "http", runtime: string) {
  const label = `tool:${tool.replaceAll(/\W+/g, "-")}-${runtime}`;
  const { url, key } = scene.service;
  const created = async () => (await scene.rest(`/v1/sessions?label=${label}`)).body.data;
  return {
    address: `${url.replace("http", scheme)}/connect/${key}?runtime=${runtime}&label=${label}`,
    expectEnd: (timeout: number) =>
      expect
        .poll(async () => (await created()).map((session: { ended_reason?: string }) => session.ended_reason), {
          timeout,
        })
        .toEqual(["destroyed"]),
  };
}

/** Answers of the model of browser-use: opens the page, greets, reads the title and returns it. */
function greet(page: string): (asked: Asked) => Said {
  const plan = (...action: object[]): Said => ({
    text: JSON.stringify({ thinking: "", evaluation_previous_goal: "", memory: "", next_goal: "", action }),
  });
  return ({ body }) => {
    // The first message shows elements of examples.
    const shown = JSON.stringify(body.messages.slice(1));
    const title = /Hello Ada/.exec(shown)?.[0];
    if (title !== undefined) return plan({ done: { text: title, success: true } });
    // The agent is not shown titles that scripts change.
    if (shown.includes("Clicked button")) return plan({ evaluate: { code: "document.title" } });
    const indexOf = (element: string) => Number(new RegExp(`\\[(\\d+)\\]<${element}`).exec(shown)?.[1]);
    const [input, button] = [indexOf("input"), indexOf("button")];
    if (Number.isNaN(input)) return plan({ navigate: { url: page, new_tab: false } });
    return plan({ input: { index: input, text: "Ada" } }, { click: { index: button } });
  };
}

describe.each(["headless-shell", "chromium"])("in %s", (runtime) => {
  test.each(Object.entries(toolPrograms))(
    "%s runs with its address changed, and its close ends the session",
    async (tool, { language, scheme, text }) => {
      const { address, expectEnd } = addressFor(tool, scheme, runtime);
      const page = scene.site.url("/client.html");
      provider.begin(greet(page));
      const file = language === "python" ? "program.py" : "program.mjs";
      await writeFile(join(workshop.directory, file), text);
      const env = { ADDRESS: address, PAGE: page, LLM: `${provider.origin}/v1` };
      const given = Object.entries(env).map(([name, value]) => `${name}=${value}`);
      const interpreter = language === "python" ? "python" : "node";
      const { stdout } = await workshop.run("env", ...given, interpreter, file);
      expect(stdout.trim().split("\n").at(-1)).toBe("Hello Ada");
      // crawl4ai leaves browsers that it connects to open, so the session waits for its return.
      await expectEnd(tool === "crawl4ai" ? 40_000 : 5_000);
    },
    180_000,
  );

  test("the MCP server of Playwright runs with its address changed", async () => {
    const { address, expectEnd } = addressFor("playwright-mcp", "ws", runtime);
    const { directory } = workshop;
    await withServer(
      [join(directory, "node_modules/.bin/playwright-mcp"), "--cdp-endpoint", address, "--output-dir", directory],
      async (mcp) => {
        await mcp.call("browser_navigate", { url: scene.site.url("/client.html") });
        const snapshot = await mcp.read("browser_snapshot");
        const named = (element: string, name: string) => ({
          element,
          ref: new RegExp(`${element} "${name}".*\\[ref=(\\w+)\\]`).exec(snapshot)?.[1],
          target: new RegExp(`${element} "${name}".*\\[ref=(\\w+)\\]`).exec(snapshot)?.[1],
        });
        await mcp.call("browser_type", { ...named("textbox", "Name"), text: "Ada" });
        expect(await mcp.read("browser_click", named("button", "Greet"))).toContain("Hello Ada");
        await mcp.call("browser_close");
      },
    );
    await expectEnd(40_000);
  }, 180_000);

  test("chrome-devtools-mcp runs with its address changed", async () => {
    const { address, expectEnd } = addressFor("chrome-devtools-mcp", "ws", runtime);
    await withServer(["npx", "chrome-devtools-mcp", "--wsEndpoint", address], async (mcp) => {
      await mcp.call("navigate_page", { pageId: 1, url: scene.site.url("/client.html") });
      const snapshot = await mcp.read("take_snapshot", { pageId: 1 });
      const named = (name: string) => ({ pageId: 1, uid: new RegExp(`uid=(\\S+) \\w+ "${name}"`).exec(snapshot)?.[1] });
      await mcp.call("fill", { ...named("Name"), value: "Ada" });
      await mcp.call("click", named("Greet"));
      expect(await mcp.read("list_pages")).toContain("Hello Ada");
    });
    await expectEnd(40_000);
  }, 180_000);
});

/** Runs an MCP server, and ends it as agents do: by closing its input. */
async function withServer([program = "", ...args]: readonly string[], use: (mcp: McpClient) => Promise<void>) {
  const server = spawn(program, args, { env: { ...process.env, CI: "1" }, stdio: ["pipe", "pipe", "ignore"] });
  try {
    await use(await McpClient.connect(server));
  } finally {
    const ended = once(server, "exit");
    server.stdin.end();
    const deadline = setTimeout(() => server.kill(), 10_000);
    await ended;
    clearTimeout(deadline);
  }
}
