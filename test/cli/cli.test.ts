import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runProgram } from "../../sdk/cli/src/program.ts";
import { longTest } from "../support/long-test.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { createHome, readCli, runCli, runInProcess } from "./program.ts";

let gateway: TestGateway;
let env: { PILOTHOUSE_URL: string; PILOTHOUSE_API_KEY: string };

beforeAll(async () => {
  gateway = await startTestGateway();
  env = { PILOTHOUSE_URL: gateway.url, PILOTHOUSE_API_KEY: await gateway.addAccount() };
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

test.each([
  [["--help"], /^ {2}open URL +opens a URL/m],
  [["shot", "--help"], /^ {2}--full-page +the whole page/m],
  [["logs", "--help"], /^ {2}-f, --follow +continue with new entries/m],
  [["open", "-h"], /--runtime NAME +browser: chromium, headless-shell/],
  [["help", "open"], /--runtime NAME +browser: chromium, headless-shell/],
  [["--version"], /^\d+\.\d+\.\d+\n$/],
])("describes itself with %j", async (args, pattern) => {
  const { code, stdout, stderr } = await runCli(args, {});
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(pattern);
});

test.each<[readonly string[], number, Readonly<Record<string, string>>, object]>([
  [["jump"], 2, {}, { error: "failure", detail: expect.stringMatching(/^expected a command \(open, .+\), got jump/) }],
  [["open"], 2, {}, { detail: "expected pilothouse open URL, got 0 arguments" }],
  [["session"], 2, {}, { detail: expect.stringMatching(/, got session; did you mean sessions\?$/) }],
  [["sessions", "--al"], 2, {}, { detail: "Unknown option '--al'; see pilothouse sessions --help" }],
  [["open", "http://a/", "--timeout", "soon"], 2, {}, { detail: "expected a whole number for --timeout, got soon" }],
  [["shot", "nonsense"], 2, {}, { detail: expect.stringContaining("expected a URL with http or https") }],
  [["shot", "http://a/", "--full-page"], 2, {}, { detail: expect.stringContaining("id of a session for --full-page") }],
  [["sessions"], 2, { PILOTHOUSE_URL: "a:80" }, { detail: expect.stringContaining("PILOTHOUSE_URL to begin with") }],
  [["listen", "--forward", "nonsense"], 2, {}, { detail: expect.stringContaining("for --forward") }],
  [["sessions"], 2, { PILOTHOUSE_API_KEY: "" }, { detail: expect.stringContaining("set PILOTHOUSE_API_KEY") }],
  [["keys", "create", "a", "--scope", "nonsense"], 2, {}, { error: "validation-failed", status: 400 }],
  [["sessions"], 3, { PILOTHOUSE_API_KEY: "phk_wrong" }, { error: "invalid-key", request_id: expect.any(String) }],
  [["listen", "--forward", "http://127.0.0.1:1/"], 3, { PILOTHOUSE_API_KEY: "phk_wrong" }, { error: "invalid-key" }],
  [["read", "ses_01jd2z5r1v7k9m3q8t4w6x0y2b"], 4, {}, { error: "not-found" }],
  [["logs", "ses_01jd2z5r1v7k9m3q8t4w6x0y2b"], 4, {}, { error: "not-found" }],
  [["logs", "-f", "ses_01jd2z5r1v7k9m3q8t4w6x0y2b"], 4, {}, { error: "not-found" }],
  [["sessions"], 7, { PILOTHOUSE_URL: "http://127.0.0.1:10" }, { error: "connection" }],
])("%j fails with %i and one line with the reason", async (args, code, other, problem) => {
  const run = await runCli(args, { ...env, ...other });
  expect([run.code, run.stdout]).toEqual([code, ""]);
  const [line = ""] = run.stderr.trimEnd().split("\n").slice(-1);
  expect(JSON.parse(line)).toMatchObject(problem);
});

test("explains errors to people in a sentence", async () => {
  const { code, stderr } = await runInProcess(
    ["sessions"],
    { ...env, PILOTHOUSE_API_KEY: "phk_wrong" },
    { isTerminal: true },
  );
  expect(code).toBe(3);
  expect(stderr).toMatch(/^pilothouse: http:\S+ answered 401 .+\n$/);
});

test("points to the address of the service when another path answers", async () => {
  const run = await runInProcess(["sessions"], { ...env, PILOTHOUSE_URL: `${gateway.url}/v1` }, { isTerminal: true });
  expect(run).toMatchObject({ code: 4, stderr: expect.stringMatching(/ answered 404 .+\. Check PILOTHOUSE_URL\n$/) });
});

test("describes empty lists in words, and writes no bytes to a terminal", async () => {
  const run = (...args: string[]) => runInProcess(args, env, { isTerminal: true });
  expect(await run("recipes")).toEqual({ code: 0, stdout: "", stderr: "no recipes\n" });
  expect(await run("sessions")).toMatchObject({ stdout: "", stderr: expect.stringContaining("no live sessions") });
  const { code, stderr } = await run("shot", "http://a/", "-");
  expect([code, stderr]).toEqual([2, expect.stringContaining("redirect the output")]);
});

test("creates, lists and revokes keys", async () => {
  const [created] = await readCli(["keys", "create", "nightly", "--scope", "sessions:read"], env);
  expect(created).toMatchObject({ name: "nightly", key: expect.stringMatching(/^phk_/), scopes: ["sessions:read"] });
  await readCli(["keys", "revoke", created.id], env);
  const listed = await readCli(["keys"], env);
  expect(listed.find(({ id }) => id === created.id)).toMatchObject({ status: "revoked" });
  const table = await runInProcess(["keys", "list"], env, { isTerminal: true });
  expect(table.stdout).toMatch(/^ID +NAME +STATUS +SCOPES +LAST USED AT\n/);
  expect(table.stdout).toMatch(new RegExp(`^${created.id} +nightly +revoked +sessions:read +-$`, "m"));
});

test("stores a key for its owner alone, and sends it to its own service only", async () => {
  const home = await createHome();
  const url = { HOME: home, PILOTHOUSE_URL: gateway.url };
  expect(await runCli(["login"], url, "phk_wrong\n")).toMatchObject({ code: 3 });
  const { code, stdout } = await runCli(["login"], url, `${env.PILOTHOUSE_API_KEY}\n`);
  expect(code).toBe(0);
  const { file } = JSON.parse(stdout);
  expect(file).toBe(join(home, ".config/pilothouse/credentials.json"));
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readCli(["sessions"], { HOME: home })).toEqual([]);
  const elsewhere = await runCli(["sessions"], { HOME: home, PILOTHOUSE_URL: "http://127.0.0.1:10" });
  expect(elsewhere).toMatchObject({ code: 2, stderr: expect.stringContaining("expected an API key") });
  await chmod(file, 0o644);
  expect(await runCli(["sessions"], { HOME: home })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("chmod 600"),
  });
  await chmod(file, 0o600);
  await writeFile(file, "{");
  expect(await runCli(["sessions"], { HOME: home })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("login again"),
  });
});

test("ends by Ctrl-C while it waits for a key", async () => {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const ending = new AbortController();
  stderr.once("data", () => ending.abort());
  const surroundings = { env, stdin, stdout: Object.assign(stdout, { isTTY: true }), stderr, signal: ending.signal };
  expect(await runProgram(["login"], surroundings)).toBe(130);
});

test("uses the key of a service on this machine, for loopback addresses only", async () => {
  const home = await createHome();
  const data = join(home, "data");
  await mkdir(data);
  await writeFile(join(data, "dev-api-key"), `${env.PILOTHOUSE_API_KEY}\n`);
  const settings = { HOME: home, DATA_DIR: data, PILOTHOUSE_URL: gateway.url };
  expect(await readCli(["sessions"], settings)).toEqual([]);
  const remote = await runCli(["sessions"], { ...settings, PILOTHOUSE_URL: "http://pilothouse.test" });
  expect(remote).toMatchObject({ code: 2, stderr: expect.stringContaining("expected an API key") });
});

longTest(
  "completes commands and options in bash",
  async () => {
    const { stdout } = await runCli(["completion", "bash"], {});
    const complete = async (...words: readonly string[]) => {
      const line = words.map((word) => `'${word}'`).join(" ");
      const script = `${stdout}COMP_WORDS=(pilothouse ${line}) COMP_CWORD=${words.length}; _pilothouse; echo "\${COMPREPLY[@]}"`;
      return (await promisify(execFile)("bash", ["-c", script])).stdout.trim();
    };
    expect(await complete("se")).toBe("sessions");
    expect(await complete("shot", "--f")).toBe("--full-page");
  },
  60_000,
);

test.each(["zsh", "fish"])("prints a completion script for %s with each command", async (shell) => {
  const { stdout } = await runCli(["completion", shell], {});
  for (const name of ["open", "sessions", "mcp"]) expect(stdout).toContain(name);
});

test("lists every command in its README", async () => {
  const readme = await readFile("sdk/cli/README.md", "utf8");
  const { stdout } = await runCli(["--help"], {});
  const names = [...stdout.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) expect(readme).toContain(`\`${name}`);
});
