import type { ClientConfig } from "pg";

/** Connection target: a URL, or the socket directory of the embedded server. */
export type DatabaseTarget = { readonly url: string } | { readonly socketDirectory: string; readonly user: string };

/** Timeout for opening a connection, in milliseconds. */
const connectMs = 3_000;

/** Returns the options of connections, both pooled and single. */
export function connectionOptions(target: DatabaseTarget): ClientConfig {
  return {
    ...("url" in target
      ? { connectionString: target.url }
      : { host: target.socketDirectory, user: target.user, database: "postgres" }),
    application_name: "pilothouse",
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
  };
}
