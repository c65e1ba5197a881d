import pg from "pg";
import { Failure } from "../errors.ts";

/** Cause of a failure if PostgreSQL is unreachable or refuses connections. */
export class DatabaseUnavailable extends Error {
  override readonly name = "DatabaseUnavailable";

  constructor(cause: unknown) {
    super("PostgreSQL cannot be reached", { cause });
  }
}

/** Returns whether an error was caused by unreachable PostgreSQL. Cached data may then be used longer. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return error instanceof Failure && error.cause instanceof DatabaseUnavailable;
}

/** Returns whether PostgreSQL rejected a statement because of a deadlock, serialization failure or timeout. */
export function isContention(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(40...|55P03|57014)$/.test(error.code ?? "");
}

/** Node.js codes for failed or lost connections. */
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

/** SQLSTATEs of a server that is starting, stopping, or out of disk, memory or connections (classes 57P, 08, 53). */
const isUnavailableState = (code: string): boolean => /^(57P0[1-5]|08...|53...)$/.test(code);

/** Messages of pg errors without a code, for lost, late or silent connections. */
const messages =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered)/;

/** Returns whether pg failed because of the connection, not the statement. */
export function isConnectionLoss(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.code !== undefined && isUnavailableState(error.code);
  if (!(error instanceof Error)) return false;
  if ("code" in error && typeof error.code === "string") return systemCodes.has(error.code);
  return messages.test(error.message) || error.message.startsWith("timeout expired");
}
