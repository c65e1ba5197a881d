import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { dataDirectory } from "../src/platform/data-directory.ts";
import { ConfigError, readerOf } from "../src/platform/environment.ts";
import { describeUnforeseen, StartRefused } from "../src/platform/start-refused.ts";

export const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Reads the address and key of the service, and returns a reader of other variables. Throws `StartRefused`. */
export function readService() {
  const read = readerOf(process.env);
  const service = read.url("PILOTHOUSE_URL", ["http:", "https:"]) ?? "http://localhost:8080";
  const key = read.text("PILOTHOUSE_KEY");
  if (key === undefined) {
    const made = join(
      dataDirectory({ env: process.env, uid: process.getuid?.() ?? -1, home: homedir() }),
      "dev-api-key",
    );
    const example = existsSync(made) ? `PILOTHOUSE_KEY=$(cat ${made})` : "`npm start` prints where it has put one";
    throw new StartRefused(`PILOTHOUSE_KEY is needed, the API key of an account: ${example}`);
  }
  return { service, key, read };
}

/** Thrown if the service at PILOTHOUSE_URL does not respond. */
export class Unreachable extends StartRefused {
  constructor(service: string, cause: unknown) {
    // The message of fetch itself is only "fetch failed".
    const reason = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
    const code = reason instanceof Error ? ("code" in reason && reason.code) || reason.message : reason;
    super(`${service} cannot be reached (${code}): start the service with \`npm start\`, or set PILOTHOUSE_URL`, {
      cause,
    });
  }
}

/** Sends a request to the service. Throws Unreachable without a response, and the abort reason of `signal`. */
export async function callService(service: string, path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(`${service}${path}`, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Unreachable(service, error);
  }
}
/** Runs a command until it has finished or Ctrl-C aborts its signal. */
export async function runCommand(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => ending.abort());
  try {
    await run(ending.signal);
  } catch (error) {
    if (ending.signal.aborted) return;
    process.stderr.write(explain(error));
    process.exitCode = 1;
  }
}

/** Returns the line that explains why a command failed. */
export function explain(error: unknown): string {
  const isOurs = error instanceof StartRefused || error instanceof ConfigError;
  const isForeseen = isOurs || (error instanceof TypeError && "code" in error);
  // Messages of node:util are long; their first line suffices.
  const [sentence] = isForeseen ? error.message.split("\n") : [describeUnforeseen(error)];
  return `pilothouse: ${sentence}\n`;
}
