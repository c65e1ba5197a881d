import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, readdir, readFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Browser } from "playwright";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openWorkshop, type Workshop } from "../clients/generated-client.ts";
import { installWheel } from "../sdk/python-package.ts";
import { packSdk } from "../sdk/typescript-package.ts";
import { type OwnCdpScene, startCdpScene } from "../support/cdp-proxy-scene.ts";
import { freePorts } from "../support/free-port.ts";
import { openLink, takeControl, windowPoint } from "../support/live-viewer.ts";
import { LlmProvider } from "../support/llm-provider.ts";
import { launchPlainBrowser } from "../support/plain-browser.ts";
import { credentials, ExampleSite } from "./example-site.ts";

const root = join(import.meta.dirname, "../..");
const maxLines = 40;

/** Programs of each language, and the file of each example. */
const languages = {
  typescript: {
    run: [process.execPath],
    suite: ["playwright", "test"],
    files: {
      scrape: "scrape.ts",
      profile: "reuse-login.ts",
      takeover: "takeover.ts",
      agent: "agent.ts",
      suite: "shop.spec.ts",
      webhooks: "receive-webhooks.ts",
      mcp: "read-by-mcp.ts",
      input: "stream-input.ts",
    },
  },
  python: {
    run: ["python", "-W", "error::ResourceWarning"],
    suite: ["pytest"],
    files: {
      scrape: "scrape.py",
      profile: "reuse_login.py",
      takeover: "takeover.py",
      agent: "agent.py",
      suite: "test_shop.py",
      webhooks: "receive_webhooks.py",
      mcp: "read_by_mcp.py",
      input: "stream_input.py",
    },
  },
} as const;
type Language = keyof typeof languages;
type Example = keyof (typeof languages)["typescript"]["files"];

let provider: LlmProvider;
let site: ExampleSite;
let scene: OwnCdpScene;
let receiverPort: number;
const projects = new Map<Language, Workshop>();

/** Installs the packed TypeScript SDK with the packages of the examples. */
async function installTarball(): Promise<Workshop> {
  const project = await openWorkshop("node_modules/.bin");
  const tarball = await packSdk(project.directory);
  await cp(join(root, "examples/typescript"), project.directory, { recursive: true });
  await project.run("npm", "install", `./${tarball}`, "--ignore-scripts", "--no-audit", "--no-fund");
  return project;
}

/** Installs the wheel of the Python SDK with the packages of the examples. */
async function installPython(): Promise<Workshop> {
  const requirements = join(root, "examples/python/requirements.txt");
  const project = await installWheel("mypy==2.4.1", "--requirement", requirements);
  await cp(join(root, "examples/python"), project.directory, { recursive: true });
  return project;
}

beforeAll(async () => {
  projects.set("typescript", await installTarball());
  projects.set("python", await installPython());
  [provider, site] = await Promise.all([new LlmProvider().start(), new ExampleSite().start()]);
  receiverPort = (await freePorts("RECEIVER")).RECEIVER;
  const allowed = { EGRESS_ALLOW: site.host, WEBHOOK_ALLOW: `127.0.0.1:${receiverPort}` };
  scene = await startCdpScene({ ...provider.env, ...allowed });
}, 600_000);

afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await site?.stop();
  await provider?.[Symbol.asyncDispose]();
  for (const project of projects.values()) await project[Symbol.asyncDispose]();
}, 60_000);

function projectOf(language: Language): Workshop {
  const project = projects.get(language);
  if (!project) throw new Error(`the project of ${language} is not installed`);
  return project;
}

/** Running example. */
interface Running {
  readonly program: ChildProcess;
  /** Returns the next line of the output. */
  nextLine(): Promise<string>;
  /** Waits for a successful end, and returns the remaining output. */
  finish(): Promise<string[]>;
}

/** Starts an example with the settings of a user. It ends with the test. */
function start(
  language: Language,
  example: Example,
  args: readonly string[],
  env: Record<string, string> = {},
): Running {
  const { run, suite, files } = languages[language];
  const { directory } = projectOf(language);
  const bins = [join(directory, "venv/bin"), join(directory, "node_modules/.bin"), dirname(process.execPath)];
  const [command = "", ...before] = example === "suite" ? suite : run;
  const { url, key, grpcAddress } = scene.service;
  const program = spawn(command, [...before, files[example], ...args], {
    cwd: directory,
    env: {
      PATH: [...bins, process.env.PATH].join(delimiter),
      HOME: directory,
      PILOTHOUSE_URL: url,
      PILOTHOUSE_API_KEY: key,
      GRPC_ADDRESS: grpcAddress,
      PROTO: join(root, "proto"),
      PYTHONPATH: join(root, "proto"),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void program.kill("SIGKILL"));
  let errors = "";
  program.stderr.on("data", (data) => (errors += data));
  const ended = once(program, "exit");
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]();
  return {
    program,
    async nextLine() {
      const { done, value } = await lines.next();
      if (done) throw new Error(`${files[example]} has ended:\n${errors}`);
      return value;
    },
    async finish() {
      const rest: string[] = [];
      for (let next = await lines.next(); !next.done; next = await lines.next()) rest.push(next.value);
      const [code] = await ended;
      if (code !== 0) throw new Error(`${files[example]} exited with ${code}:\n${rest.join("\n")}\n${errors}`);
      return rest;
    },
  };
}

test("each example is listed in the README, runs here, and has at most 40 lines", async () => {
  const readme = await readFile(join(root, "examples/README.md"), "utf8");
  for (const [language, { files }] of Object.entries(languages)) {
    const directory = join(root, "examples", language);
    const present = (await readdir(directory)).filter((name) => /\.(?:ts|py)$/.test(name));
    expect(present.sort()).toEqual(Object.values(files).sort());
    for (const name of present) {
      expect(readme).toContain(`[${name}](${language}/${name})`);
      const lines = (await readFile(join(directory, name), "utf8")).trimEnd().split("\n");
      expect(lines.length, name).toBeLessThanOrEqual(maxLines);
    }
  }
});

test("the types of the examples are right", async () => {
  const options = [
    "--strict",
    "--exactOptionalPropertyTypes",
    "--module",
    "nodenext",
    "--target",
    "esnext",
    "--noEmit",
  ];
  const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types"), "--skipLibCheck"];
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const files = (language: Language) => Object.values(languages[language].files);
  await projectOf("typescript").run(process.execPath, compiler, ...options, ...types, ...files("typescript"));
  await projectOf("python").run("mypy", "--strict", "--ignore-missing-imports", ...files("python"));
}, 300_000);

describe.each(["typescript", "python"] as const)("in %s", (language) => {
  test("scrapes all pages of a list", async () => {
    const lines = await start(language, "scrape", [`${site.url}/products`]).finish();
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      [19, 21, 7, 30, 12].map((price, index) => ({ name: `Shirt ${index + 1}`, price })),
    );
  }, 120_000);

  test("logs in once, and reuses the profile", async () => {
    const run = () => start(language, "profile", [site.url], { SHOP_PASSWORD: credentials.password }).finish();
    expect(await run()).toEqual(["logged in", "Account of ada"]);
    expect(await run()).toEqual(["reused the login", "Account of ada"]);
    const { body } = await scene.rest("/v1/profiles");
    expect(body.data).toHaveLength(1);
    // The example of the next language creates its own profile.
    await scene.rest(`/v1/profiles/${body.data[0].id}`, undefined, { method: "DELETE" });
  }, 120_000);

  test("hands the session to a person for a second factor, and continues", async () => {
    const person: Browser = await launchPlainBrowser();
    onTestFinished(() => person.close());
    const program = start(language, "takeover", [site.url], { BANK_PASSWORD: credentials.password });
    const [link = ""] = /http\S+/.exec(await program.nextLine()) ?? [];
    const { page } = await openLink(person, link);
    await takeControl(page);
    await expect.poll(() => page.locator("canvas").getAttribute("data-sequence")).not.toBe(null);
    const { x, y } = await windowPoint(page, { x: 300, y: 200 });
    await page.mouse.click(x, y);
    await page.keyboard.type(credentials.code);
    await page.keyboard.press("Enter");
    await expect.poll(() => site.codes.splice(0)).toEqual([credentials.code]);
    // The program ends the session at once, so that the button to take control does not return.
    await page.getByRole("button", { name: "Hand back" }).click();
    expect(await program.finish()).toEqual(["Account of ada"]);
  }, 120_000);

  test("runs an agent that returns an object of a schema", async () => {
    const url = `${site.url}/products`;
    provider.say(
      { calls: [{ name: "navigate", input: { url } }] },
      { calls: [{ name: "done", input: { text: "Found.", result: { name: "Shirt 3", price: 7 } } }] },
    );
    const llm = { LLM_KEY: provider.key, LLM_MODEL: "anthropic/claude-test" };
    expect(await start(language, "agent", [url], llm).finish()).toEqual(["Shirt 3 costs 7"]);
    expect(provider.asked.at(-1)?.results.join()).toContain("Shirt 1");
  }, 120_000);

  test("runs a Playwright suite in remote browsers", async () => {
    const lines = await start(language, "suite", [], { SHOP_URL: site.url }).finish();
    expect(lines.join("\n")).toContain("2 passed");
    expect((await scene.rest("/v1/sessions?status=live")).body.data).toEqual([]);
  }, 120_000);

  test("receives webhooks, and refuses others", async () => {
    const url = `http://127.0.0.1:${receiverPort}/`;
    const { body } = await scene.rest("/v1/webhooks", { url, events: ["session.completed"] });
    const receiver = start(language, "webhooks", [], { WEBHOOK_SECRET: body.secret, PORT: String(receiverPort) });
    expect(await receiver.nextLine()).toBe(`listening on port ${receiverPort}`);
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(400);
    const session = await scene.open();
    await scene.rest(session, undefined, { method: "DELETE" });
    expect(await receiver.nextLine()).toMatch(new RegExp(`^session.completed .*${session.split("/").at(-1)}`));
    await scene.rest(`/v1/webhooks/${body.id}`, undefined, { method: "DELETE" });
    receiver.program.kill("SIGTERM");
    await once(receiver.program, "exit");
  }, 120_000);

  test("reads a page by MCP", async () => {
    const [tools, ...text] = await start(language, "mcp", [`${site.url}/products`]).finish();
    expect(tools).toContain("start_session");
    expect(text.join("\n")).toContain("Shirt 1");
  }, 120_000);

  test("streams 250 key events a second over gRPC, which all arrive", async () => {
    const [line = ""] = await start(language, "input", [`${site.url}/pad`]).finish();
    const [, accepted, ms] = /^(\d+) events in (\d+) ms$/.exec(line) ?? [];
    expect(Number(accepted)).toBe(1_000);
    // The last of 1,000 events is due after 3,996 ms.
    expect(Number(ms)).toBeGreaterThan(3_900);
    expect(Number(ms)).toBeLessThan(15_000);
    await expect.poll(() => site.typed.splice(0)).toEqual([500]);
  }, 120_000);
});
