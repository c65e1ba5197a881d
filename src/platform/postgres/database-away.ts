import pg from "pg";
import { Failure } from "../errors.ts";

/** PostgreSQL cannot be reached, or does not take connections. */
export class DatabaseAway extends Error {
  override readonly name = "DatabaseAway";

  constructor(cause: unknown) {
    super("PostgreSQL cannot be reached", { cause });
  }
}

/** Says whether a failure means that PostgreSQL cannot be reached, so that what is known may be used a little longer. */
export function isDatabaseAway(error: unknown): boolean {
  return error instanceof Failure && error.cause instanceof DatabaseAway;
}

/** Says whether PostgreSQL gave a statement up for the sake of others: a deadlock, a lock that was not had in time, a timeout. */
export function isContention(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(40...|55P03|57014)$/.test(error.code ?? "");
}

/** Codes of Node for a connection that cannot be made or has broken. */
const systemCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOENT",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** SQLSTATEs of a server that shuts down, starts, recovers, or has no disk, memory or connection left (classes 57P, 08, 53). */
const isAwayState = (code: string): boolean => /^(57P0[1-5]|08...|53...)$/.test(code);

/** What pg says, without a code, of a connection that ended, could not be made in time or does not answer. */
const messages =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered)/;

/** Says whether pg failed for want of a connection, rather than by what the statement said. */
export function isConnectionLoss(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.code !== undefined && isAwayState(error.code);
  if (!(error instanceof Error)) return false;
  if ("code" in error && typeof error.code === "string") return systemCodes.has(error.code);
  return messages.test(error.message) || error.message.startsWith("timeout expired");
}
