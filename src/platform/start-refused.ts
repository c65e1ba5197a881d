/** Thrown if the service cannot start. The message contains the reason and the remedy. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}

/** Describes an unexpected error in one line, or with its stack if LOG_LEVEL is `debug` or `trace`. */
export function describeUnexpectedError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isTraced = process.env.LOG_LEVEL === "debug" || process.env.LOG_LEVEL === "trace";
  return isTraced ? (error.stack ?? error.message) : `${error.message} (LOG_LEVEL=debug shows where)`;
}
