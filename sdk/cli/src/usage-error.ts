/** Thrown for a wrong command line or a missing setting. The message states the next step. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
