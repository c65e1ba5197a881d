/** The service cannot run here as things are; the message says in a sentence why, and what to do. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}

/** Returns one line about an error that was not foreseen, or its stack if LOG_LEVEL asks for it. */
export function describeUnforeseen(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isTraced = process.env.LOG_LEVEL === "debug" || process.env.LOG_LEVEL === "trace";
  return isTraced ? (error.stack ?? error.message) : `${error.message} (LOG_LEVEL=debug shows where)`;
}
