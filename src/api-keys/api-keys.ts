import type { Principal } from "../call.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import type { Database, Tx } from "../platform/database.ts";
import { isDatabaseAway } from "../platform/database-away.ts";
import { fail } from "../platform/errors.ts";
import { createFreshCache } from "../platform/fresh-cache.ts";
import type { Ids } from "../platform/ids.ts";
import { hashSecret, matchesHash } from "../platform/secrets.ts";
import { allScopes } from "./scopes.ts";
import { findKey, insertKey, type KeyRow, revokeExpiredKeys, revokeKey } from "./store.ts";
import { type KeyToken, newSecret, parseAuthorization, writeToken } from "./token.ts";

/** Milliseconds. */
const freshFor = 5_000;
const staleFor = 60_000;
const patience = 300;

/** Keys kept in memory: at about 500 bytes each, 5 MB. */
const cacheCapacity = 10_000;

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

/** Makes API keys and tells whose a bearer is. */
export interface ApiKeys {
  /**
   * Reads an Authorization header. Throws `unauthorized`, `invalid-key`, `revoked-key` or `expired-key`. Answers from
   * memory for up to 5 s, and for up to 60 s while PostgreSQL cannot be reached.
   */
  authenticate(authorization: string | undefined): Promise<Principal>;
  /** Does the same without a look-up: undefined when the key is not in memory, too old there, or may not be used. */
  peek(authorization: string | undefined): Principal | undefined;
  /** Says whether the key is in memory, be it too old to be used without a look-up, and was valid then. */
  isKnown(authorization: string | undefined): boolean;
  create(tx: Tx, request: KeyRequest): Promise<CreatedKey>;
  /** Revokes a key at once on every gateway; false when it was revoked before. */
  revoke(tx: Tx, id: string): Promise<boolean>;
  /** Marks keys that expired more than 24 hours ago as revoked. */
  sweep(): Promise<void>;
  start(): void;
  stop(): void;
}

/** What the keys stand on. */
export interface ApiKeysParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly ids: Ids;
  readonly clock: Clock;
}

/** A key with what is made of it once. */
interface KnownKey {
  readonly row: KeyRow;
  readonly principal: Principal;
}

function toKnownKey(row: KeyRow): KnownKey {
  const { id, account_id, tier, scopes } = row;
  return { row, principal: { accountId: account_id, keyId: id, tier, scopes: new Set(scopes) } };
}

/** Throws when a key may not be used, in the order of the interface. The secret comes first: strangers learn nothing. */
function assertUsable({ row }: KnownKey, { secret }: KeyToken, now: number): void {
  if (!matchesHash(secret, row.secret_hash)) throw unknownKey();
  if (row.revoked_at) throw fail("revoked-key");
  if (row.expires_at && row.expires_at.getTime() <= now) throw fail("expired-key");
}

const unknownKey = () => fail("invalid-key", {}, { detail: "no key is known by this name and secret" });

/** Makes the keys of a gateway. */
export function createApiKeys({ db, bus, ids, clock }: ApiKeysParts): ApiKeys {
  const cache = createFreshCache<KnownKey>({
    load: async (id) => {
      const row = await findKey(db, id);
      return row && toKnownKey(row);
    },
    isAway: isDatabaseAway,
    freshFor,
    staleFor,
    patience,
    capacity: cacheCapacity,
  });
  let unsubscribe: (() => void) | undefined;

  async function sweep(): Promise<void> {
    for (const id of await revokeExpiredKeys(db)) bus.publish("key-changed", id);
  }

  function usable(
    authorization: string | undefined,
    read: (id: string) => KnownKey | undefined,
  ): Principal | undefined {
    try {
      const token = parseAuthorization(authorization);
      const known = read(token.keyId);
      if (known) assertUsable(known, token, clock.now());
      return known?.principal;
    } catch {
      return undefined;
    }
  }

  return {
    async authenticate(authorization) {
      const token = parseAuthorization(authorization);
      const known = await cache.get(token.keyId);
      if (!known) throw unknownKey();
      assertUsable(known, token, clock.now());
      return known.principal;
    },
    peek: (authorization) => usable(authorization, cache.peek),
    isKnown: (authorization) => usable(authorization, cache.peekStale) !== undefined,
    async create(tx, { accountId, name, scopes = allScopes, expiresAt }) {
      const keyId = ids.next("key");
      const secret = newSecret();
      await insertKey(tx, { id: keyId, accountId, name, secretHash: hashSecret(secret), scopes, expiresAt });
      return { id: keyId, token: writeToken({ keyId, secret }) };
    },
    async revoke(tx, id) {
      tx.afterCommit(() => bus.publish("key-changed", id));
      return revokeKey(tx, id);
    },
    sweep,
    start() {
      unsubscribe ??= bus.subscribe("key-changed", (id) => cache.forget(id));
    },
    stop() {
      unsubscribe?.();
      unsubscribe = undefined;
    },
  };
}
