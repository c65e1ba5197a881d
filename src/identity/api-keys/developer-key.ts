import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { ensureDeveloperAccount } from "../../accounts/store.ts";
import type { BearerToken } from "../../kernel/bearer-kind.ts";
import type { Ids } from "../../platform/ids.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { hashSecret, matchesHash } from "../../platform/secrets/secrets.ts";
import { allScopes } from "./scopes.ts";
import { findKeys, insertKey } from "./store.ts";
import { newKeySecret, parseToken, writeToken } from "./token.ts";

/** Reads the key written by an earlier start. Returns undefined if the file is missing or malformed. */
async function readKeyFile(path: string): Promise<BearerToken | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  return parseToken(text.trim());
}

/** Writes the key file atomically, readable only by its owner. */
async function writeKeyFile(path: string, token: BearerToken): Promise<void> {
  const unfinished = `${path}.new`;
  const file = await open(unfinished, "w", 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(`${writeToken(token)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(unfinished, path);
}

async function isUsable(db: Database, { id, secret }: BearerToken): Promise<boolean> {
  const [row] = await findKeys(db, [id]);
  return row === undefined || (row.revoked_at === null && matchesHash(secret, row.secret_hash));
}

/**
 * Ensures that `$DATA_DIR/dev-api-key` holds a valid key of the developer account, and returns the key. The file is
 * written before the row: after a crash in between, the next start inserts the row.
 */
export async function ensureDeveloperKey(db: Database, ids: Ids, dataDir: string): Promise<string> {
  const path = join(dataDir, "dev-api-key");
  let token = await readKeyFile(path);
  if (!token || !(await isUsable(db, token))) {
    token = { id: ids.next("key"), secret: newKeySecret() };
    await writeKeyFile(path, token);
  }
  const { id, secret } = token;
  await db.transaction(async (tx) => {
    const accountId = await ensureDeveloperAccount(tx, ids.next("acc"));
    const secretHash = hashSecret(secret);
    await insertKey(tx, { id, accountId, name: "developer key", secretHash, scopes: allScopes });
  });
  return writeToken(token);
}
