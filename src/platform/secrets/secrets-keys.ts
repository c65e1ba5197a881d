import { randomBytes } from "node:crypto";
import { open, readFile, rename } from "node:fs/promises";
import { ConfigError } from "../environment.ts";
import { randomText } from "../ids.ts";

/** A key that seals the keys of what is kept secret. */
export interface SecretsKey {
  /** Stands in everything that it has sealed. */
  readonly id: string;
  /** 256 bits. */
  readonly secret: Buffer;
}

const keyBytes = 32;
const variable = "SECRETS_KEYS";

/**
 * Reads `id:base64` items separated by commas: the first key seals, all of them open. To rotate, put a new one in front,
 * and take an old one away when nothing is sealed by it any more.
 */
export function parseSecretsKeys(text: string): SecretsKey[] {
  const items = text.split(",").map((item) => item.trim());
  const keys = items.filter((item) => item !== "").map(parseKey);
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new ConfigError(variable, "accepts each id once");
  return keys;
}

function parseKey(item: string): SecretsKey {
  const [, id, base64] = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/]{43}=)$/.exec(item) ?? [];
  // The value is not repeated: it is a secret.
  if (id === undefined || base64 === undefined) {
    throw new ConfigError(variable, "accepts `id:key` items separated by commas, each key 32 bytes in base64");
  }
  return { id, secret: Buffer.from(base64, "base64") };
}

/** Reads the keys of a file, or makes it with a new one, for its owner alone. */
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
