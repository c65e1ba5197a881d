import { ConfigError, readerOf } from "../src/platform/environment.ts";
import { StartRefused } from "../src/platform/start-refused.ts";

/** Prints a line for whoever runs the command. */
export const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Reads which service a command talks to, with what key, and gives the reader of the rest. Throws `StartRefused`. */
export function readService() {
  const read = readerOf(process.env);
  const service = read.url("PILOTHOUSE_URL", ["http:", "https:"]) ?? "http://localhost:8080";
  const key = read.text("PILOTHOUSE_KEY");
  if (key === undefined)
    throw new StartRefused("PILOTHOUSE_KEY is needed: the key of an account, such as `npm start` makes");
  return { service, key, read };
}

/** Runs what a command line asks for, until it is done or Ctrl-C aborts its signal. */
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

/** Returns the line that says why a command has failed: what was foreseen in a sentence, anything else with its stack. */
export function explain(error: unknown): string {
  const isOurs = error instanceof StartRefused || error instanceof ConfigError;
  const isForeseen = isOurs || (error instanceof TypeError && "code" in error);
  // What node:util refuses it explains at length: its first line says what is wrong.
  const [sentence = ""] = isForeseen
    ? error.message.split("\n")
    : [error instanceof Error ? error.stack : String(error)];
  return `pilothouse: ${sentence}\n`;
}
