import { createHash } from "node:crypto";
import type { RedisClient } from "./redis-connection.ts";

/** Runs a Lua script with keys and arguments. */
export type RedisScript = (client: RedisClient, keys: string[], args: string[]) => Promise<unknown>;

/** Creates a script that Redis caches by its hash. */
export function createScript(source: string): RedisScript {
  const hash = createHash("sha1").update(source).digest("hex");
  return (client, keys, args) => {
    const options = { keys, arguments: args };
    return client.evalSha(hash, options).catch((error: unknown) => {
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      return client.eval(source, options);
    });
  };
}
