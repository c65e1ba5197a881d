import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { sectionsOf } from "../support/guide-blocks.ts";
import { type OwnLendScene, startLendScene } from "../support/lend-scene.ts";
import { LlmProvider } from "../support/llm-provider.ts";

const root = join(import.meta.dirname, "../..");
const readme = sectionsOf("../README.md");

let provider: LlmProvider;
let scene: OwnLendScene;
beforeAll(async () => {
  provider = await new LlmProvider().start();
  scene = await startLendScene({ ...provider.env, WEBHOOK_ALLOW: "127.0.0.1" });
}, 120_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
});

/** The blocks below a heading, for the addresses of the test's own service and site. */
function blocksBelow(heading: string, language: string): string[] {
  const section = readme.find((each) => each.heading === heading);
  return (section?.blocks ?? []).flatMap((block) =>
    block.language === language
      ? block.text
          .replaceAll("http://localhost:8080", scene.service.url)
          .replaceAll("ws://localhost:8080", scene.service.url.replace("http", "ws"))
          .replaceAll("/var/lib/pilothouse", scene.service.dataDir)
          .replaceAll("https://example.com/hooks", "http://127.0.0.1:1025/hooks")
          .replaceAll("https://example.com/", scene.site.url("/popups.html"))
          .replace("LLM_KEY=sk-ant-...", "LLM_KEY=good-key-x7Qa")
      : [],
  );
}

/** Runs shell blocks one after the other, as somebody who pastes them into one shell. */
async function paste(...blocks: readonly string[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "readme-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  // What the machine may lack, and what runs in the checkout.
  const stand = `grpcurl() { :; }; npm() { shift 3; node --no-warnings ${root}/tools/agent.ts "$@"; }`;
  const env = { ...process.env, PILOTHOUSE_URL: scene.service.url };
  const options = { cwd: directory, env, timeout: 60_000 };
  const { stdout, stderr } = await promisify(execFile)("sh", ["-c", [stand, ...blocks].join("\n")], options);
  // A stream that is followed for some seconds ends so.
  expect(stderr.replaceAll(/^curl: \(28\).*\n/gm, "")).toBe("");
  return stdout;
}

const first = () => blocksBelow("A session by REST", "sh");

test.each(["Connect and gRPC", "Files", "A person", "An agent", "A recipe", "Events"])(
  "the README's commands below %s work as they are pasted",
  async (heading) => {
    const blocks = blocksBelow(heading, "sh");
    expect(blocks).not.toEqual([]);
    const output = await paste(...first(), ...blocks);
    expect(output).toMatch(/^ses_\w{26}$/m);
    expect(output).not.toContain("/errors/");
  },
  90_000,
);

test("the README's program drives a session over a WebSocket", async () => {
  const [program = ""] = blocksBelow("WebSocket", "js");
  const output = await paste(...first(), "export KEY ID", `node --input-type=module -e '${program}'`);
  expect(output).toContain(`"url":"${scene.site.url("/popups.html")}"`);
}, 60_000);

test("the README's commands make an account, which pays with what its pages have", async () => {
  const [account = "", card = "", crypto = ""] = blocksBelow("Accounts", "sh");
  const [signUp = "", logIn = ""] = account.split(/^# Open the mail .*$/m);
  await paste(...first(), signUp);
  const outbox = /http\S+\/dev\/mail\?key=\S+/.exec(scene.service.output())?.[0] ?? "";
  const links = async (): Promise<string[]> => {
    const { mails } = await (await fetch(outbox.replace("localhost", "127.0.0.1"))).json();
    return mails.flatMap((mail: { links: string[] }) => mail.links);
  };
  await expect.poll(links, { timeout: 20_000 }).toHaveLength(1);
  const [, token] = (await links())[0]?.split("#") ?? [];
  await scene.rest("/v1/auth/verify-email", { token });
  const output = await paste(...first(), signUp.split("\n")[0] ?? "", logIn, card, crypto.replace("--fail ", ""));
  expect(output).toMatch(/"key":"phk_/);
  expect(output).toContain('"url":"');
  // Before somebody has paid there is no portal.
  expect(output.match(/\/errors\/[\w-]+/g)).toEqual(["/errors/conflict"]);
}, 90_000);

test("every block of the README is tested", () => {
  const untested = ["Pilothouse", "Run it"];
  const here = readme.filter(({ heading, blocks }) => blocks.length > 0 && !untested.includes(heading));
  expect(here.map(({ heading }) => heading)).toEqual([
    ...["A session by REST", "Connect and gRPC", "Files", "A person", "An agent", "A recipe", "Events", "WebSocket"],
    "Accounts",
  ]);
});
