import type { Log } from "../log.ts";
import type { Database } from "../postgres/database.ts";
import type { Migrations, Stamp } from "../postgres/schema.ts";
import { StartRefused } from "../start-refused.ts";
import { isKeyLost, type Sealer } from "./secrets-sealer.ts";

/** Keys of SECRETS_KEYS that may have encrypted secrets of this database. */
interface SecretsKeysTable {
  id: string;
  /** Data key that the key has sealed, to recognise the key. */
  proof: Buffer;
  created_at: Stamp;
}

declare module "../postgres/schema.ts" {
  interface Schema {
    secrets_keys: SecretsKeysTable;
  }
}

export const secretsMigrations: Migrations = {
  "170-secrets-keys": [
    `create table secrets_keys (
      id text primary key,
      proof bytea not null,
      created_at timestamptz not null default app_now()
    )`,
  ],
};

const context = { accountId: "service", purpose: "secrets-key" };

function opens(sealer: Sealer, proof: Buffer): boolean {
  try {
    sealer.openDataKey(proof, context);
    return true;
  } catch (error) {
    if (isKeyLost(error)) return false;
    throw error;
  }
}

/**
 * Records the keys of a started sealer in the database. Logs recorded keys that the sealer lacks. Throws StartRefused
 * if another key has the id of an earlier one, because secrets of the two could not be distinguished.
 */
export async function checkSecretsKeys({ db, log }: { db: Database; log: Log }, sealer: Sealer): Promise<void> {
  const own = sealer.sealByEach(context);
  const values = [...own].map(([id, proof]) => ({ id, proof }));
  const insert = db.sql.insertInto("secrets_keys").values(values);
  await insert.onConflict((conflict) => conflict.doNothing()).execute();
  const rows = await db.sql.selectFrom("secrets_keys").select(["id", "proof"]).orderBy("id").execute();
  const changed = rows.find(({ id, proof }) => own.has(id) && !opens(sealer, proof));
  if (changed)
    throw new StartRefused(
      `the key ${changed.id} of SECRETS_KEYS is not the one that encrypted secrets of this database: restore that key, or, if it is lost, give the new key another id; see docs/backup.md`,
    );
  const missing = rows.flatMap(({ id }) => (own.has(id) ? [] : [id]));
  if (missing.length > 0)
    log.error({ key_ids: missing }, "SECRETS_KEYS lacks keys: secrets that they encrypted cannot be read");
}
