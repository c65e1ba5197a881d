import { randomBytes } from "node:crypto";
import { allScopes } from "../../../src/identity/api-keys/scopes.ts";
import { newKeySecret, parseToken, writeToken } from "../../../src/identity/api-keys/token.ts";
import { createIds } from "../../../src/platform/ids.ts";
import { hashSecret } from "../../../src/platform/secrets/secrets.ts";
import type { Service } from "../../support/service.ts";
import { withDatabase } from "./embedded-database.ts";

const ids = createIds({ now: Date.now });

export interface KeyRow {
  readonly tier?: string;
  readonly scopes?: readonly string[];
  readonly expiresAt?: Date;
  readonly revokedAt?: Date;
}

/** Inserts an account with one key into a service's database. Returns the key. */
export async function addAccount({ databaseUrl }: Pick<Service, "databaseUrl">, row: KeyRow = {}): Promise<string> {
  const { tier = "free", scopes = allScopes, expiresAt = null, revokedAt = null } = row;
  const accountId = ids.next("acc");
  const keyId = ids.next("key");
  const secret = newKeySecret();
  await withDatabase(databaseUrl, async (query) => {
    await query("insert into accounts (id, name, tier) values ($1, $2, $3)", [accountId, "Stranger", tier]);
    await query(
      `insert into api_keys (id, account_id, name, secret_hash, scopes, expires_at, revoked_at)
        values ($1, $2, 'key', $3, $4, $5, $6)`,
      [keyId, accountId, hashSecret(secret), scopes, expiresAt, revokedAt],
    );
  });
  return writeToken({ id: keyId, secret });
}

/** Inserts another key for the account of a key. Returns the new key. */
export async function addKey({ databaseUrl }: Pick<Service, "databaseUrl">, token: string): Promise<string> {
  const keyId = ids.next("key");
  const secret = newKeySecret();
  await withDatabase(databaseUrl, (query) =>
    query(
      `insert into api_keys (id, account_id, name, secret_hash, scopes)
        select $1, account_id, name, $2, scopes from api_keys where id = $3`,
      [keyId, hashSecret(secret), parseToken(token)?.id],
    ),
  );
  return writeToken({ id: keyId, secret });
}

/** Returns a well-formed key that does not exist. */
export function strangeKey(): string {
  return writeToken({ id: ids.next("key"), secret: newKeySecret() });
}

/** Returns a well-formed ID of a session that does not exist. */
export function strangeSession(): string {
  return ids.next("ses");
}

/** Returns a unique header value. */
export function freshKey(): string {
  return randomBytes(12).toString("hex");
}
