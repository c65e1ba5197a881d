import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { clearGround, type Ground, makeGround, StartedProject } from "../start/started-project.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { sectionsOf } from "../support/guide-blocks.ts";
import { LlmProvider } from "../support/llm-provider.ts";
import { describeProcess, isStillThere, type ListedProcess } from "../support/process-list.ts";
import { restClient } from "../support/rest.ts";

const root = join(import.meta.dirname, "../..");
const readme = sectionsOf("../README.md");
const examples = sectionsOf("examples.md");
const [startCommand = ""] = readme.find(({ heading }) => heading === "Run it")?.blocks[0]?.text.split("#") ?? [];

let provider: LlmProvider;
let site: FixtureSite;
let ground: Ground;
let project: StartedProject;
let service: { readonly url: string; readonly key: string };
/** Lines that the service prints for its user to paste. */
let printedLines: string[];

beforeAll(async () => {
  [provider, site, ground] = await Promise.all([new LlmProvider().start(), new FixtureSite().start(), makeGround()]);
  project = new StartedProject(ground, startCommand.trim().split(" "), {
    ...provider.env,
    WEBHOOK_ALLOW: "127.0.0.1",
    EGRESS_ALLOW: site.host,
    PROXY_CHECK: site.host,
    // Each pasted example leaves a session.
    WORKER_SLOTS: "20",
    WARM_BROWSERS: "0",
    CLOSE_AT_CPU: "100",
  });
  printedLines = await project.pasteLines();
  const key = readFileSync(join(ground.dataDir, "dev-api-key"), "utf8").trim();
  service = { url: `http://127.0.0.1:${ground.env.PORT}`, key };
}, 120_000);
afterAll(async () => {
  await project?.stop();
  if (ground) await clearGround(ground);
  await site?.stop();
  await provider?.[Symbol.asyncDispose]();
}, 60_000);

/** Returns the shell blocks below a heading, with the addresses of the test's service and site. */
function blocksBelow(page: typeof readme, heading: string): string[] {
  const section = page.find((each) => each.heading === heading);
  return (section?.blocks ?? []).flatMap(({ language, text }) =>
    language === "sh"
      ? text
          .replaceAll("http://localhost:8080", service.url)
          .replaceAll("ws://localhost:8080", service.url.replace("http", "ws"))
          .replaceAll("localhost:8081", `127.0.0.1:${ground.env.GRPC_PORT}`)
          .replaceAll("/var/lib/pilothouse", ground.dataDir)
          .replaceAll("https://example.com/hooks", "http://127.0.0.1:1025/hooks")
          .replaceAll("https://example.com/", site.url("/popups.html"))
          .replaceAll("--max-time 5", "--max-time 2")
          .replace("LLM_KEY=sk-ant-...", "LLM_KEY=good-key-x7Qa")
      : [],
  );
}

/** Runs shell blocks one after the other in one shell. */
async function paste(cwd: string, ...blocks: readonly string[]): Promise<string> {
  const env = { ...process.env, PILOTHOUSE_URL: service.url };
  const { stdout, stderr } = await promisify(execFile)("sh", ["-c", blocks.join("\n")], { cwd, env, timeout: 60_000 });
  // curl exits with 28 when it has followed a stream until its timeout.
  expect(stderr.replaceAll(/^curl: \(28\).*\n/gm, "")).toBe("");
  return stdout;
}

/** Session that the first block of the examples has created. */
let exampleSession: string | undefined;

/** Runs blocks of the examples after the first one, in a temporary directory. Only the first call creates the session. */
async function pasteExamples(...blocks: readonly string[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "readme-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  // npm must run in the checkout. The progress of the agent goes to standard error.
  const npm = `npm() { shift 3; node --no-warnings ${root}/sdk/cli/src/main.ts run "$@" 2>&1; }`;
  const [first = ""] = blocksBelow(examples, "A session");
  const opened = exampleSession === undefined ? first : first.replace(/^ID=[^;]*/m, `ID=${exampleSession}`);
  const output = await paste(directory, npm, opened, ...blocks);
  exampleSession ??= /^ses_\w{26}$/m.exec(output)?.[0];
  return output;
}

/** Value in `/proc/<pid>/status` of a process with a seccomp filter. */
const filtered = "2";

function seccompOf(pid: number): string | undefined {
  try {
    return /^Seccomp:\t(\d)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  } catch {
    // The process has ended.
    return undefined;
  }
}

test("the printed lines work when pasted, and their browser is confined", async () => {
  const destroy = printedLines.at(-1) ?? "";
  expect(destroy).toContain("DELETE");

  const output = await paste(ground.home, ...printedLines.slice(0, -1));
  const id = /^ses_\w+$/m.exec(output)?.[0];
  expect(output).not.toContain("errors/");
  expect(readFileSync(join(ground.home, "page.png")).subarray(1, 4).toString()).toBe("PNG");
  expect(readFileSync(join(ground.home, "page.html"), "utf8")).toContain("Thank you, Ada!");
  expect(readFileSync(join(ground.home, "page.pdf")).subarray(0, 5).toString()).toBe("%PDF-");

  let browser: ListedProcess[] = [];
  const confinement = async () => {
    browser = await project.browserProcesses();
    const renderers = browser.filter(({ command }) => command.includes("--type=renderer"));
    const networks = browser.flatMap(({ network }) => network ?? []);
    const outside = describeProcess(await project.workerPid())?.network;
    return {
      hasRenderers: renderers.length > 0,
      unfiltered: renderers.filter(({ pid }) => seccompOf(pid) !== filtered).map(({ command }) => command),
      hasNetworks: networks.length > 0,
      isOutside: networks.some((network) => network === outside),
    };
  };
  await expect.poll(confinement).toEqual({ hasRenderers: true, unfiltered: [], hasNetworks: true, isOutside: false });
  expect(readFileSync(join(ground.dataDir, "worker.log"), "utf8")).toContain('"isolation":"namespace"');

  expect(await paste(ground.home, ...printedLines.slice(0, 2), `ID=${id}`, destroy)).toBe("");
  const mains = browser.filter(({ command }) => !command.includes("--type="));
  await expect.poll(() => mains.filter(isStillThere), { timeout: 30_000 }).toEqual([]);
}, 120_000);

test("each request of the README works when pasted into its own shell", async () => {
  const blocks = blocksBelow(readme, "One request on each protocol");
  expect(blocks).toHaveLength(5);
  const output: string[] = [];
  for (const block of blocks) output.push(await paste(root, block));
  expect(output[0]).toContain('"control":true');
  expect(output[1]).toBe("Popups\n");
  expect(output[2]).toMatch(/"id":"ses_\w{26}","status":"SESSION_STATUS_\w+"/);
  expect(output[3]).toMatch(/"status": "SESSION_STATUS_\w+"/);
  expect(output[4]).toContain(`"id":"1","navigate":{`);
  expect(output.join("")).not.toContain("/errors/");
}, 90_000);

test("the README's TypeScript creates a session and prints a link to it", async () => {
  const section = readme.find(({ heading }) => heading === "One request on each protocol");
  const { text = "" } = section?.blocks.find(({ language }) => language === "ts") ?? {};
  const directory = await mkdtemp(join(tmpdir(), "readme-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const source = join(root, "sdk/typescript/src/index.ts");
  await writeFile(join(directory, "first.mts"), text.replace("@pilothouse/sdk", source));
  const env = { ...process.env, PILOTHOUSE_URL: service.url, PILOTHOUSE_API_KEY: service.key };
  const { stdout } = await promisify(execFile)(process.execPath, ["first.mts"], {
    cwd: directory,
    env,
    timeout: 60_000,
  });
  expect(stdout).toMatch(/^http:\S+\n$/);
});

test.each([
  "A page in one call",
  "Session options",
  "A profile from Playwright",
  "Files",
  "A person",
  "An agent",
  "A recipe",
  "Events",
])(
  "the examples below %s work when pasted",
  async (heading) => {
    const blocks = blocksBelow(examples, heading);
    expect(blocks).not.toEqual([]);
    const output = await pasteExamples(...blocks);
    expect(output).toMatch(/^ses_\w{26}$/m);
    expect(output).not.toContain("/errors/");
  },
  90_000,
);

test("the examples create an account, which can pay on the pages of the payment sandbox", async () => {
  const [account = "", card = "", crypto = ""] = blocksBelow(examples, "Accounts");
  const [signUp = "", logIn = ""] = account.split(/^# Open the e-mail .*$/m);
  await pasteExamples(signUp);
  const outbox = /http\S+\/dev\/mail\?key=\S+/.exec(project.printed)?.[0] ?? "";
  const links = async (): Promise<string[]> => {
    const { mails } = await (await fetch(outbox.replace("localhost", "127.0.0.1"))).json();
    return mails.flatMap((mail: { links: string[] }) => mail.links);
  };
  await expect.poll(links, { timeout: 20_000 }).toHaveLength(1);
  const [, token] = (await links())[0]?.split("#") ?? [];
  await restClient(service)("/v1/auth/verify-email", { token });
  const output = await pasteExamples(signUp.split("\n")[0] ?? "", logIn, card, crypto.replace("--fail ", ""));
  expect(output).toMatch(/"key":"phk_/);
  expect(output).toContain('"url":"');
  // The portal is only available after a payment.
  expect(output.match(/\/errors\/[\w-]+/g)).toEqual(["/errors/conflict"]);
}, 90_000);

test("every block of the README and the examples is tested", () => {
  const headings = [...readme, ...examples].filter(({ blocks }) => blocks.length > 0).map(({ heading }) => heading);
  expect(startCommand.trim()).toBe("npm start");
  expect(headings).toEqual([
    "Run it",
    "One request on each protocol",
    "A session",
    "A page in one call",
    "Session options",
    "A profile from Playwright",
    "Files",
    "A person",
    "An agent",
    "A recipe",
    "Events",
    "Accounts",
  ]);
});

test("Ctrl-C ends everything", async () => {
  project.signal("SIGINT");
  // npm exits by the signal that it received, regardless of the service's exit code.
  expect(["SIGINT", 0, 130]).toContain(await project.ended());
  await expect.poll(() => project.leftovers(), { timeout: 45_000 }).toEqual([]);
}, 120_000);
