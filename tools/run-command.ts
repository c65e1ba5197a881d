import { ConfigError } from "../src/platform/environment.ts";
import { describeUnexpectedError, StartRefused } from "../src/platform/start-refused.ts";

export const print = (line: string): void => void process.stdout.write(`${line}\n`);

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
  const [sentence] = isForeseen ? error.message.split("\n") : [describeUnexpectedError(error)];
  return `pilothouse: ${sentence}\n`;
}
