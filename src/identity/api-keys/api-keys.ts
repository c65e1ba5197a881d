import type { Bus } from "../../platform/bus.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Ids } from "../../platform/ids.ts";
import type { Log } from "../../platform/log.ts";
import type { Database, Tx } from "../../platform/postgres/database.ts";
import { createRepeatedJob } from "../../platform/repeated-job.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import { allScopes } from "./scopes.ts";
import { insertKey, keepUses, revokeExpiredKeys, revokeKey } from "./store.ts";
import { newSecret, writeToken } from "./token.ts";

/** Milliseconds. */
const times = {
  /** A key that has expired answers `revoked-key` after this. */
  remembered: 24 * 3_600_000,
  /** Between two writings of when keys were used. */
  uses: 60_000,
};

/** A new key; its token is shown this once. */
export interface CreatedKey {
  readonly id: string;
  readonly token: string;
}

/** Who may make which key. */
export interface KeyRequest {
  readonly accountId: string;
  readonly name: string;
  /** All scopes without it. */
  readonly scopes?: readonly string[];
  readonly expiresAt?: Date;
}

/** Makes a key for who asks for it outside the API: the operator. */
export async function createKey(
  tx: Tx,
  ids: Ids,
  { accountId, name, scopes = allScopes, expiresAt }: KeyRequest,
): Promise<CreatedKey> {
  const id = ids.next("key");
  const secret = newSecret();
  await insertKey(tx, { id, accountId, name, secretHash: hashSecret(secret), scopes, expiresAt });
  return { id, token: writeToken({ id, secret }) };
}

/** Ends API keys, and knows when they were used. */
export interface ApiKeys {
  /** Revokes a key at once on every gateway; false when it was revoked before. Revocations that have an event: revocation.ts. */
  revoke(tx: Tx, id: string): Promise<boolean>;
  /** Has every gateway read a key again, once the transaction that changes it has been committed. */
  changed(tx: Tx, id: string): void;
  /** Marks keys that expired more than 24 hours ago as revoked. */
  sweep(): Promise<void>;
  /** Takes note that a key is used. It costs no statement: what was noted is written once a minute. */
  used(id: string): void;
  start(): void;
  /** Writes what was noted. */
  stop(): Promise<void>;
}

interface ApiKeysParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
}

/** Makes the keys of a gateway. */
export function createApiKeys({ db, bus, clock, log }: ApiKeysParts): ApiKeys {
  let uses = new Map<string, number>();

  async function writeUses(): Promise<void> {
    if (uses.size === 0) return;
    const noted = uses;
    uses = new Map();
    await keepUses(db, noted);
  }

  const changed = (tx: Tx, id: string): void => tx.afterCommit(() => bus.publish("bearer-changed", id));
  const complaint = "when keys were last used cannot be written at the moment";
  const job = createRepeatedJob({ run: writeUses, every: times.uses, complaint }, { clock, log });
  return {
    changed,
    revoke(tx, id) {
      changed(tx, id);
      return revokeKey(tx, id, new Date(clock.now()));
    },
    async sweep() {
      const now = clock.now();
      const expired = await revokeExpiredKeys(db, { before: new Date(now - times.remembered), now: new Date(now) });
      for (const id of expired) bus.publish("bearer-changed", id);
    },
    used: (id) => void uses.set(id, clock.now()),
    start: job.start,
    async stop() {
      await job.stop();
      await writeUses().catch((error: unknown) => log.debug({ err: error }, complaint));
    },
  };
}
