import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type OwnLendScene, startLendScene } from "../support/cdp-proxy-scene.ts";
import { sectionsOf } from "../support/guide-blocks.ts";
import { LlmProvider } from "../support/llm-provider.ts";

const root = join(import.meta.dirname, "../..");
const readme = sectionsOf("../README.md");
const examples = sectionsOf("examples.md");
const [startCommand = ""] = readme.find(({ heading }) => heading === "Run it")?.blocks[0]?.text.split("#") ?? [];

let provider: LlmProvider;
let scene: OwnLendScene;
beforeAll(async () => {
  provider = await new LlmProvider().start();
  // Each pasted example leaves a session.
  const env = { ...provider.env, WEBHOOK_ALLOW: "127.0.0.1", WORKER_SLOTS: "20" };
  scene = await startLendScene(env, startCommand.trim().split(" "));
}, 120_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
});

/** Returns the shell blocks below a heading, with the addresses of the test's service and site. */
function blocksBelow(page: typeof readme, heading: string): string[] {
  const section = page.find((each) => each.heading === heading);
  return (section?.blocks ?? []).flatMap(({ language, text }) =>
    language === "sh"
      ? text
          .replaceAll("http://localhost:8080", scene.service.url)
          .replaceAll("ws://localhost:8080", scene.service.url.replace("http", "ws"))
          .replaceAll("localhost:8081", scene.service.grpcAddress)
          .replaceAll("/var/lib/pilothouse", scene.service.dataDir)
          .replaceAll("https://example.com/hooks", "http://127.0.0.1:1025/hooks")
          .replaceAll("https://example.com/", scene.site.url("/popups.html"))
          .replaceAll("--max-time 5", "--max-time 2")
          .replace("LLM_KEY=sk-ant-...", "LLM_KEY=good-key-x7Qa")
      : [],
  );
}

/** Runs shell blocks one after the other in one shell. */
async function paste(cwd: string, ...blocks: readonly string[]): Promise<string> {
  const env = { ...process.env, PILOTHOUSE_URL: scene.service.url };
  const { stdout, stderr } = await promisify(execFile)("sh", ["-c", blocks.join("\n")], { cwd, env, timeout: 60_000 });
  // curl exits with 28 when it has followed a stream until its timeout.
  expect(stderr.replaceAll(/^curl: \(28\).*\n/gm, "")).toBe("");
  return stdout;
}

/** Runs blocks of the examples after the first one, in a temporary directory. */
async function pasteExamples(...blocks: readonly string[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "readme-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  // npm must run in the checkout. The progress of the agent goes to standard error.
  const npm = `npm() { shift 3; node --no-warnings ${root}/sdk/cli/src/main.ts run "$@" 2>&1; }`;
  return await paste(directory, npm, ...blocksBelow(examples, "A session"), ...blocks);
}

test("the README's requests work when pasted, on each protocol", async () => {
  const blocks = blocksBelow(readme, "One request on each protocol");
  expect(blocks).toHaveLength(4);
  const output = (await paste(root, blocks.join("\necho; echo --\n"))).split("\n--\n");
  expect(output[0]).toContain('"control":true');
  expect(output[1]).toMatch(/"id":"ses_\w{26}","status":"SESSION_STATUS_LIVE"/);
  expect(output[2]).toMatch(/"status": "SESSION_STATUS_LIVE"/);
  expect(output[3]).toContain(`"id":"1","navigate":{`);
}, 90_000);

test("the README's TypeScript creates a session and prints a link to it", async () => {
  const section = readme.find(({ heading }) => heading === "One request on each protocol");
  const { text = "" } = section?.blocks.find(({ language }) => language === "ts") ?? {};
  const directory = await mkdtemp(join(tmpdir(), "readme-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const source = join(root, "sdk/typescript/src/index.ts");
  await writeFile(join(directory, "first.mts"), text.replace("@pilothouse/sdk", source));
  const env = { ...process.env, PILOTHOUSE_URL: scene.service.url, PILOTHOUSE_API_KEY: scene.service.key };
  const { stdout } = await promisify(execFile)(process.execPath, ["first.mts"], {
    cwd: directory,
    env,
    timeout: 60_000,
  });
  expect(stdout).toMatch(/^http:\S+\n$/);
});

test("each request of the README works separately", async () => {
  const output = await Promise.all(
    blocksBelow(readme, "One request on each protocol").map((block) => paste(root, block)),
  );
  expect(output.join("")).not.toContain("/errors/");
}, 90_000);

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
  const [signUp = "", logIn = ""] = account.split(/^# Open the mail .*$/m);
  await pasteExamples(signUp);
  const outbox = /http\S+\/dev\/mail\?key=\S+/.exec(scene.service.output())?.[0] ?? "";
  const links = async (): Promise<string[]> => {
    const { mails } = await (await fetch(outbox.replace("localhost", "127.0.0.1"))).json();
    return mails.flatMap((mail: { links: string[] }) => mail.links);
  };
  await expect.poll(links, { timeout: 20_000 }).toHaveLength(1);
  const [, token] = (await links())[0]?.split("#") ?? [];
  await scene.rest("/v1/auth/verify-email", { token });
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
