import type { Selectable } from "kysely";
import { keyBearers } from "../../identity/api-keys/key-bearer.ts";
import { tokenText } from "../../identity/token-text.ts";
import type { BearerKind, Credential } from "../../kernel/bearer-kind.ts";
import type { Database } from "../../platform/postgres/database.ts";
import type { Schema } from "../../platform/postgres/schema.ts";

type KeyTokenRow = Selectable<Schema["key_tokens"]>;

const text = tokenText("pho_", "tok");

export const newTokenSecret = text.newSecret;

/** Formats a token: `pho_<id>_<secret>`. */
export const writeKeyToken = text.write;

/** Restricts the key's rights to the scopes of the token. The token expires no later than the key. */
function toCredential(row: KeyTokenRow, key: Credential): Credential {
  const scopes = new Set(row.scopes.filter((scope) => key.principal.scopes.has(scope)));
  const ends = Math.min(row.expires_at.getTime(), key.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY);
  const expiresAt = new Date(ends);
  return {
    ...key,
    principal: { ...key.principal, scopes, ...(key.principal.kind === "key" && { tokenExpiresAt: expiresAt }) },
    secretHash: row.secret_hash,
    expiresAt,
    belongsTo: [...key.belongsTo, row.key_id],
  };
}

/** Creates the bearer kind of OAuth access tokens for API keys. */
export function keyTokenBearers(db: Database): BearerKind {
  const keys = keyBearers(db);
  return {
    prefix: text.prefix,
    parse: text.parse,
    async find(ids) {
      const rows = await db.sql
        .selectFrom("key_tokens")
        .selectAll()
        .where("id", "in", [...ids])
        .execute();
      const found = await keys.find(rows.map((row) => row.key_id));
      const credentials = rows.map((row) => [row, found.get(row.key_id)] as const);
      return new Map(credentials.flatMap(([row, key]) => (key ? [[row.id, toCredential(row, key)]] : [])));
    },
  };
}
