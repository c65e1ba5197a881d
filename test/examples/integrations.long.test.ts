import { cp, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWorkshop, type Workshop } from "../clients/generated-client.ts";
import { installWheel, type PythonPackage } from "../sdk/python-package.ts";
import { packSdk } from "../sdk/typescript-package.ts";
import { type OwnCdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { LlmProvider } from "../support/llm-provider.ts";
import { ExampleSite } from "./example-site.ts";

const root = join(import.meta.dirname, "../..");
const examples = join(root, "examples/integrations");

let provider: LlmProvider;
let site: ExampleSite;
let scene: OwnCdpScene;
let node: Workshop;
let python: PythonPackage;

beforeAll(async () => {
  node = await openWorkshop("node_modules/.bin");
  await cp(examples, node.directory, { recursive: true });
  const install = ["--ignore-scripts", "--no-audit", "--no-fund"];
  await node.run("npm", "install", `./${await packSdk(node.directory)}`, ...install);
  python = await installWheel("--requirement", join(examples, "requirements.txt"));
  await cp(examples, python.directory, { recursive: true });
  [provider, site] = await Promise.all([new LlmProvider().start(), new ExampleSite().start()]);
  scene = await startCdpScene({ EGRESS_ALLOW: site.host });
}, 1_200_000);

afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await site?.stop();
  await provider?.[Symbol.asyncDispose]();
  await python?.[Symbol.asyncDispose]();
  await node?.[Symbol.asyncDispose]();
});

/** Runs an example with the settings of a user, and returns its output. */
async function runExample(workshop: Workshop, ...program: readonly string[]): Promise<string> {
  const { url, key } = scene.service;
  const settings = {
    PILOTHOUSE_URL: url,
    PILOTHOUSE_API_KEY: key,
    OPENAI_BASE_URL: `${provider.origin}/v1`,
    OPENAI_API_KEY: provider.key,
    ANONYMIZED_TELEMETRY: "false",
  };
  const given = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const { stdout } = await workshop.run("env", ...given, ...program, `${site.url}/products`);
  expect((await scene.rest("/v1/sessions?status=live")).body.data).toEqual([]);
  return stdout;
}

test("each example is listed in the README and has at most 40 lines", async () => {
  const readme = await readFile(join(examples, "../README.md"), "utf8");
  const present = (await readdir(examples)).filter((name) => /\.(?:ts|py)$/.test(name));
  expect(present).toHaveLength(3);
  for (const name of present) {
    expect(readme).toContain(`[${name}](integrations/${name})`);
    const lines = (await readFile(join(examples, name), "utf8")).trimEnd().split("\n");
    expect(lines.length, name).toBeLessThanOrEqual(40);
  }
});

test("the types of the TypeScript example are right", async () => {
  const options = ["--strict", "--module", "nodenext", "--target", "esnext", "--noEmit", "--skipLibCheck"];
  const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")];
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  await node.run(process.execPath, compiler, ...options, ...types, "ask-stagehand.ts");
}, 120_000);

test("browser-use runs an agent in a session", async () => {
  const says = (answer: object) => ({ text: JSON.stringify(answer) });
  provider.begin(({ body }) => {
    // browser-use opens the URL of the task before it asks, and has the result judged at the end.
    const shown = JSON.stringify(body.messages.slice(1));
    if (!JSON.stringify(body).includes("evaluation_previous_goal")) return says({ verdict: true });
    const text = /Shirt 1/.exec(shown) ? "Shirt 1 costs 19" : "The page has no products.";
    const thoughts = { thinking: "", evaluation_previous_goal: "", memory: "", next_goal: "" };
    return says({ ...thoughts, action: [{ done: { text, success: true } }] });
  });
  expect(await runExample(python, "python", "ask_browser_use.py")).toMatch(/^Shirt 1 costs 19$/m);
}, 300_000);

test("crawl4ai reads a page of a session", async () => {
  expect(await runExample(python, "python", "crawl.py")).toContain("Shirt 2");
}, 300_000);

test("Stagehand extracts data of a page of a session", async () => {
  // Stagehand asks a second time whether the answer is complete.
  provider.begin(({ body }) => ({
    text: JSON.stringify(
      JSON.stringify(body).includes('"completed"')
        ? { progress: "found", completed: true }
        : { name: "Shirt 1", price: 19 },
    ),
  }));
  expect(await runExample(node, process.execPath, "ask-stagehand.ts")).toBe("Shirt 1 costs 19\n");
}, 300_000);
