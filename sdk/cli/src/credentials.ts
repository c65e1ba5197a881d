import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { UsageError } from "./usage-error.ts";

/** Service and key of a run. */
export interface Credentials {
  readonly url: string;
  readonly key: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const defaultUrl = "http://localhost:8080";

/** Returns the address of the service: PILOTHOUSE_URL, else that of the stored key, else the default. */
export function findUrl(env: Environment): string {
  const given = env.PILOTHOUSE_URL;
  if (given && !/^https?:\/\//i.test(given))
    throw new UsageError(`expected PILOTHOUSE_URL to begin with http:// or https://, got ${given}`);
  return (given || readStored(env)?.url || defaultUrl).replace(/\/+$/, "");
}

/**
 * Returns the key: PILOTHOUSE_API_KEY, else the stored key if it is of the same service, else that of a service of this
 * user on this machine. Throws UsageError if there is none.
 */
export function findCredentials(env: Environment): Credentials {
  const url = findUrl(env);
  if (env.PILOTHOUSE_API_KEY) return { url, key: env.PILOTHOUSE_API_KEY };
  const stored = readStored(env);
  if (stored?.url === url) return stored;
  const key = isLoopback(url) ? readEmbeddedKey(env) : undefined;
  if (key !== undefined) return { url, key };
  throw new UsageError(`expected an API key for ${url}, got none: set PILOTHOUSE_API_KEY, or run pilothouse login`);
}

/** Stores a key that only its owner can read. Returns the path of the file. */
export function storeCredentials(env: Environment, credentials: Credentials): string {
  const path = storePath(env);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, `${JSON.stringify(credentials)}\n`, { mode: 0o600 });
  // The mode above has no effect on a file that exists.
  chmodSync(path, 0o600);
  return path;
}

function storePath(env: Environment): string {
  return join(env.XDG_CONFIG_HOME || join(homedir(), ".config"), "pilothouse", "credentials.json");
}

function readStored(env: Environment): Credentials | undefined {
  const path = storePath(env);
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) return undefined;
  if ((mode & 0o077) !== 0)
    throw new UsageError(
      `expected ${path} to be readable only by you, got mode ${(mode & 0o777).toString(8)}: chmod 600 it`,
    );
  try {
    const { url, key }: Partial<Credentials> = JSON.parse(readFileSync(path, "utf8"));
    if (typeof url === "string" && typeof key === "string") return { url, key };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new UsageError(`expected url and key in ${path}, got other content: run pilothouse login again`);
}

/** Returns whether an address is of this machine. The key of the embedded service is sent nowhere else. */
export function isLoopback(url: string): boolean {
  return URL.canParse(url) && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
}

/** Reads the key that the embedded service of this user has stored in its data directory. */
function readEmbeddedKey(env: Environment): string | undefined {
  const own = join(env.XDG_DATA_HOME || join(homedir(), ".local/share"), "pilothouse");
  const directories = env.DATA_DIR ? [env.DATA_DIR] : ["/var/lib/pilothouse", own];
  for (const directory of directories) {
    try {
      return readFileSync(join(directory, "dev-api-key"), "utf8").trim();
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code !== "ENOENT" && code !== "EACCES" && code !== "ENOTDIR") throw error;
    }
  }
  return undefined;
}
