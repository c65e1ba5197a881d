import { spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { listProcesses } from "../support/process-list.ts";
import { copyProjectFor } from "./owned-copy.ts";

/** The user `nobody`: initdb requires a user with a name. */
const user = { uid: 65_534, gid: 65_534 };

/** Milliseconds for all tests of the user. */
export const userLimit = 300_000;

/** Runs tests as an ordinary user in a copy owned by that user. Without root the suite itself does so. */
export async function testAsUser(...which: string[]): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const copy = await copyProjectFor(user);
  onTestFinished(() => rm(copy, { recursive: true, force: true }));
  const { code, output } = await runAsUser(copy, ["node", "node_modules/vitest/vitest.mjs", "run", ...which]);
  // Shows the full output of the failed run.
  if (code !== 0) throw new Error(`the tests of the ordinary user ended with ${code}:\n${output}`);
  expect(output).toMatch(/Tests +\d+ passed/);
}

/** Creates a directory of the user. Its name is short because the length of Chromium's socket path is limited. */
async function directoryOfUser(prefix: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), prefix));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await chown(directory, user.uid, user.gid);
  return directory;
}

/** Kills the processes that an aborted run left in its directories. */
function endAllIn(places: readonly string[]): void {
  const isInside = (text: string): boolean => places.some((place) => text.includes(place));
  for (const { pid } of listProcesses().filter(
    ({ uid, command, directory, dataDir = "" }) => uid === user.uid && isInside(`${command} ${directory} ${dataDir}`),
  )) {
    process.kill(pid, "SIGKILL");
  }
}

/** Runs a command in a directory as the user with an empty environment. */
async function runAsUser(directory: string, command: readonly string[]): Promise<{ code: unknown; output: string }> {
  const home = await directoryOfUser("h-");
  const temporary = await directoryOfUser("t-");
  const bin = join(directory, "node_modules/.bin");
  const identity = [`--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups", "--inh-caps=-all"];
  const child = spawn("setpriv", [...identity, ...command], {
    cwd: directory,
    env: {
      PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`,
      HOME: home,
      TMPDIR: temporary,
      NO_COLOR: "1",
      NODE_COMPILE_CACHE: join(directory, ".cache/compiled"),
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: userLimit,
  });
  onTestFinished(() => endAllIn([directory, temporary]));
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => void said.push(text));
  const [code, signal] = await once(child, "close");
  return { code: code ?? signal, output: Buffer.concat(said).toString() };
}
