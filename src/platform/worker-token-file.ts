import { ConfigError, type EnvironmentReader } from "./environment.ts";

/** Reads the secret that admits workers. Returns undefined if it is neither set nor required. */
export function readWorkerToken(read: EnvironmentReader, isNeeded: true): string;
export function readWorkerToken(read: EnvironmentReader, isNeeded: boolean): string | undefined;
export function readWorkerToken(read: EnvironmentReader, isNeeded: boolean): string | undefined {
  const token = read.text("WORKER_TOKEN");
  if (token === undefined ? isNeeded : token.length < 16) {
    throw new ConfigError(
      "WORKER_TOKEN",
      "accepts a secret of at least 16 characters, the same on control processes and workers",
    );
  }
  return token;
}
