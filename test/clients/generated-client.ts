import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect } from "vitest";
import { go } from "../support/livekit-build.ts";

const run = promisify(execFile);

/** A temporary folder for programs, with `bin` on their path. */
export interface Workshop extends AsyncDisposable {
  readonly directory: string;
  /** Runs a program and returns what it printed; its output is in the error if it fails. */
  run(program: string, ...args: string[]): Promise<{ readonly stdout: string; readonly stderr: string }>;
}

/** Creates a workshop; `env` adds to the environment of its programs. */
export async function openWorkshop(
  bin: string,
  env: (directory: string) => Record<string, string> = () => ({}),
): Promise<Workshop> {
  const directory = await mkdtemp(join(tmpdir(), "pilothouse-client-"));
  const goFolder = go === undefined || go === "go" ? [] : [dirname(go)];
  const path = [join(directory, bin), dirname(process.execPath), ...goFolder, process.env.PATH].join(delimiter);
  const options = { cwd: directory, env: { ...process.env, PATH: path, ...env(directory) }, maxBuffer: 2 ** 26 };
  return {
    directory,
    run: (program, ...args) =>
      run(program, args, options).catch((failure) =>
        Promise.reject(new Error(`${failure.message}\n${failure.stdout}\n${failure.stderr}`)),
      ),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

/** Expected output of every client's journey: a default session, a tap, each capture, a file and a problem. */
export const journeyResult = {
  page: "about:blank",
  captures: ["image/png", "text/html; charset=utf-8", "application/pdf"],
  bytes: 6,
  text: "a file",
  type: expect.stringMatching(/\/session-destroyed$/),
  reason: "destroyed",
};
