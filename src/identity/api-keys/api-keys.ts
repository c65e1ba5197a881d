import type { Ids } from "../../platform/ids.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { createRepeatedJob } from "../../platform/repeated-job.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import { allScopes } from "./scopes.ts";
import { insertKey, revokeExpiredKeys, revokeKey, saveUses } from "./store.ts";
import { newKeySecret, writeToken } from "./token.ts";

const times = {
  /** Milliseconds after expiry until a key counts as revoked. */
  remembered: 24 * 3_600_000,
  /** Milliseconds between writes of last-used times. */
  uses: 60_000,
};

/** A new key. The token cannot be read later, because only a hash of its secret is stored. */
export interface CreatedKey {
  readonly id: string;
  readonly token: string;
}

/** A key that the operator creates. */
export interface KeyRequest {
  readonly accountId: string;
  readonly name: string;
  /** Default: all scopes. */
  readonly scopes?: readonly string[];
  readonly expiresAt?: Date;
}

/** Creates a key for the operator, outside the API. */
export async function createKey(
  tx: Tx,
  ids: Ids,
  { accountId, name, scopes = allScopes, expiresAt }: KeyRequest,
): Promise<CreatedKey> {
  const id = ids.next("key");
  const secret = newKeySecret();
  await insertKey(tx, { id, accountId, name, secretHash: hashSecret(secret), scopes, expiresAt });
  return { id, token: writeToken({ id, secret }) };
}

/** Revokes API keys and records their use. */
export interface ApiKeys {
  /**
   * Revokes a key. Gateways reject the key after the commit. Returns false if the key was already revoked. To append an
   * event too, use `revokeWithEvent`.
   */
  revoke(tx: Tx, id: string): Promise<boolean>;
  /** Makes every gateway reload a key after the commit. */
  publishChange(tx: Tx, id: string): void;
  /** Revokes keys that expired more than 24 hours ago. */
  sweep(): Promise<void>;
  /** Records a use in memory; uses are written once a minute. */
  recordUse(id: string): void;
  start(): void;
  /** Writes recorded uses. */
  stop(): Promise<void>;
}

type ApiKeysParts = Pick<PlatformParts, "db" | "bus" | "clock" | "log">;

export function createApiKeys({ db, bus, clock, log }: ApiKeysParts): ApiKeys {
  let uses = new Map<string, number>();

  async function writeUses(): Promise<void> {
    if (uses.size === 0) return;
    const recorded = uses;
    uses = new Map();
    await saveUses(db, recorded);
  }

  const publishChange = (tx: Tx, id: string): void => tx.afterCommit(() => bus.publish("bearer-changed", id));
  const failureMessage = "failed to write last-used times of API keys";
  const job = createRepeatedJob({ run: writeUses, every: times.uses, failureMessage }, { clock, log });
  return {
    publishChange,
    revoke(tx, id) {
      publishChange(tx, id);
      return revokeKey(tx, id, new Date(clock.now()));
    },
    async sweep() {
      const now = clock.now();
      const expired = await revokeExpiredKeys(db, { before: new Date(now - times.remembered), now: new Date(now) });
      for (const id of expired) bus.publish("bearer-changed", id);
    },
    recordUse: (id) => void uses.set(id, clock.now()),
    start: job.start,
    async stop() {
      await job.stop();
      await writeUses().catch((error: unknown) => log.debug({ err: error }, failureMessage));
    },
  };
}
