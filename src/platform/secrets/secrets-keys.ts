import { randomBytes } from "node:crypto";
import { open, readFile, rename } from "node:fs/promises";
import { ConfigError } from "../environment.ts";
import { randomText } from "../ids.ts";

/** A key that seals data keys. */
export interface SecretsKey {
  /** Included in everything that the key seals. */
  readonly id: string;
  /** 256 bits. */
  readonly secret: Buffer;
}

const keyBytes = 32;
const variable = "SECRETS_KEYS";

/**
 * Parses `id:base64` items separated by commas. The first key seals, all keys open. To rotate, prepend a new key, and
 * remove an old one when no stored secret needs it.
 */
export function parseSecretsKeys(text: string): SecretsKey[] {
  const items = text.split(",").map((item) => item.trim());
  const keys = items.filter((item) => item !== "").map(parseKey);
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new ConfigError(variable, "accepts each id once");
  return keys;
}

function parseKey(item: string): SecretsKey {
  const [, id, base64] = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/]{43}=)$/.exec(item) ?? [];
  // Omits the value, which is secret.
  if (id === undefined || base64 === undefined) {
    throw new ConfigError(variable, "accepts `id:key` items separated by commas, each key 32 bytes in base64");
  }
  return { id, secret: Buffer.from(base64, "base64") };
}

/** Reads the keys from a file. If the file is absent or empty, writes a new key to it, readable only by its owner. */
export async function ensureSecretsFile(path: string): Promise<SecretsKey[]> {
  const found = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  const keys = parseSecretsKeys(found);
  if (keys.length > 0) return keys;
  const made = { id: randomText(8), secret: randomBytes(keyBytes) };
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.writeFile(`${made.id}:${made.secret.toString("base64")}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  return [made];
}
