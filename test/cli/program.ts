import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { runProgram } from "../../sdk/cli/src/program.ts";

type Environment = Readonly<Record<string, string>>;

/** Result of a run. */
export interface CliRun {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

/** Creates a home directory for a test. */
export async function createHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), "pilothouse-cli-"));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  return home;
}

/** Starts the command line without the settings of this process. It ends with the test. */
export function startCli(args: readonly string[], env: Environment): ChildProcessWithoutNullStreams {
  const { PATH = "", NODE_COMPILE_CACHE = "" } = process.env;
  const own = { PATH, NODE_COMPILE_CACHE, HOME: "/nonexistent", DATA_DIR: "/nonexistent" };
  const program = spawn(process.execPath, ["sdk/cli/src/main.ts", ...args], { env: { ...own, ...env } });
  onTestFinished(() => void program.kill("SIGKILL"));
  return program;
}

/** Runs the command line to its end. */
export async function runCli(args: readonly string[], env: Environment, input = ""): Promise<CliRun> {
  const program = startCli(args, env);
  program.stdin.end(input);
  const ended = once(program, "exit");
  const [stdout, stderr, [code]] = await Promise.all([text(program.stdout), text(program.stderr), ended]);
  return { stdout, stderr, code };
}

/** Returns the JSON that a command has written. Throws if it failed. */
export function jsonOf(args: readonly string[], { stdout, stderr, code }: CliRun) {
  if (code !== 0) throw new Error(`pilothouse ${args.join(" ")} exited with ${code}: ${stderr}`);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** Runs a command, and returns its JSON. Throws if it fails. */
export const readCli = async (args: readonly string[], env: Environment) => jsonOf(args, await runCli(args, env));

/** Runs the command line in this process, on a terminal if asked. */
export async function runInProcess(
  args: readonly string[],
  env: Environment,
  { isTerminal = false, signal = AbortSignal.timeout(60_000) } = {},
): Promise<CliRun> {
  const [stdout, stderr, stdin] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const printed = Promise.all([text(stdout), text(stderr)]);
  stdin.end();
  const surroundings = { env, stdin, stdout: Object.assign(stdout, { isTTY: isTerminal }), stderr, signal };
  const code = await runProgram(args, surroundings);
  for (const stream of [stdout, stderr]) stream.end();
  const [output, progress] = await printed;
  return { stdout: output, stderr: progress, code };
}
