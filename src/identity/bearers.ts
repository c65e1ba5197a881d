import { Counter, type Registry } from "prom-client";
import type { Bearer, BearerKind, BearerToken, Credential } from "../kernel/bearer-kind.ts";
import type { Principal } from "../kernel/call.ts";
import { fail } from "../platform/errors.ts";
import { createFreshCache } from "../platform/fresh-cache.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { isDatabaseUnavailable } from "../platform/postgres/database-unavailable.ts";
import { matchesHash } from "../platform/secrets/secrets.ts";
import { createBatchLoader } from "./batch-loader.ts";
import { type BearerState, createBearerWatch } from "./bearer-watch.ts";

/** Milliseconds; see `FreshCacheOptions`. */
const freshFor = 5_000;
const staleFor = 60_000;
const maxWaitMs = 300;

/** Maximum number of cached credentials: 5 MB at about 500 bytes each. */
const cacheCapacity = 10_000;

const authorizationHeader = /^Bearer +(\S+) *$/i;

/** Authenticates bearers. Caches credentials for 5 s, and up to 60 s while PostgreSQL is down. */
export interface Bearers {
  /** Parses an Authorization header. Throws `unauthorized` without a bearer, `invalid-key` for an unknown format. */
  read(authorization: string | undefined): Bearer;
  /** Returns the principal from the cache, or undefined if it is missing, too old or not valid. */
  peek(bearer: Bearer): Principal | undefined;
  /** Returns the principal. Throws `invalid-key`, `revoked-key` or `expired-key`. */
  lookUp(bearer: Bearer): Promise<Principal>;
  /** Like `lookUp`, but bypasses the cache, for refusals that must not depend on cached data. */
  lookUpFresh(bearer: Bearer): Promise<Principal>;
  /** Reports the state of a bearer every 2 s, and after changes, until the returned function is called. */
  watch(bearer: Bearer, onState: (state: BearerState) => void): () => void;
  start(): void;
  stop(): Promise<void>;
}

export interface BearersParts extends Pick<PlatformParts, "bus" | "clock" | "log"> {
  readonly kinds: readonly BearerKind[];
  readonly registry: Registry;
}

const revoked = "the key or token was revoked: use another key, or log in again";
const expired = "the key or token has expired: use the key that replaced it, refresh the login, or create a new one";
const unknownBearer = () =>
  fail(
    "invalid-key",
    {},
    { detail: "the API key is unknown: check that the whole key was copied, or create a new key" },
  );

/** Parses an Authorization header. Throws `unauthorized` or `invalid-key`. */
export function readBearer<Kind extends Pick<BearerKind, "prefix" | "parse">>(
  authorization: string | undefined,
  kinds: readonly Kind[],
): BearerToken & { readonly kind: Kind } {
  const [, text] = authorizationHeader.exec(authorization ?? "") ?? [];
  if (text === undefined) throw fail("unauthorized", {}, { detail: "send the header Authorization: Bearer <API key>" });
  const kind = kinds.find(({ prefix }) => text.startsWith(prefix));
  const token = kind?.parse(text);
  if (!kind || !token)
    throw fail(
      "invalid-key",
      {},
      { detail: "the bearer is not a key or a token of this service: send an API key, which begins with phk_" },
    );
  return { kind, id: token.id, secret: token.secret };
}

/**
 * Throws if a bearer is not valid. Checks the secret first, so that the reason is reported only to holders of the
 * secret.
 */
function assertUsable(
  credential: Credential | undefined,
  { secret }: BearerToken,
  now: number,
): asserts credential is Credential {
  if (!credential || !matchesHash(secret, credential.secretHash)) throw unknownBearer();
  if (credential.isRevoked) throw fail("revoked-key", {}, { detail: revoked });
  if (credential.expiresAt && credential.expiresAt.getTime() <= now) throw fail("expired-key", {}, { detail: expired });
}

/** Creates the bearer lookup of a gateway. */
export function createBearers({ kinds, bus, clock, log, registry }: BearersParts): Bearers {
  const lookups = new Counter({
    name: "pilothouse_bearer_lookups_total",
    help: "Bearers looked up in PostgreSQL, by outcome.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  const loaders = new Map(kinds.map((kind) => [kind.prefix, createBatchLoader(kind.find)]));
  const cache = createFreshCache<Credential>({
    load,
    isUnavailable: isDatabaseUnavailable,
    freshFor,
    staleFor,
    maxWait: maxWaitMs,
    capacity: cacheCapacity,
    clock,
  });
  const watch = createBearerWatch({ verify, clock, log });
  let unsubscribe: (() => void) | undefined;

  /** Loads a credential by its cache key: the prefix of the bearer kind, a space and the id. */
  async function load(key: string): Promise<Credential | undefined> {
    const [prefix = "", id = ""] = key.split(" ");
    try {
      const credential = await loaders.get(prefix)?.(id);
      lookups.inc({ outcome: credential ? "found" : "unknown" });
      return credential;
    } catch (error) {
      lookups.inc({ outcome: "failed" });
      throw error;
    }
  }

  const keyOf = ({ kind, id }: Bearer): string => `${kind.prefix} ${id}`;

  function verify(bearer: Bearer, credential: Credential | undefined): Principal {
    assertUsable(credential, bearer, clock.now());
    return credential.principal;
  }

  function forget(changed: string): void {
    cache.forgetIf((key, { belongsTo }) => key.endsWith(` ${changed}`) || belongsTo.includes(changed));
    void watch.runNow();
  }

  /** Like `verify`, but also throws `expired-key` after `opensUntil`. Streams that are open then continue. */
  function verifyForAdmission(bearer: Bearer, credential: Credential | undefined): Principal {
    const principal = verify(bearer, credential);
    const { opensUntil } = credential ?? {};
    if (opensUntil && opensUntil.getTime() <= clock.now()) throw fail("expired-key", {}, { detail: expired });
    return principal;
  }

  const lookUp = async (bearer: Bearer): Promise<Principal> =>
    verifyForAdmission(bearer, await cache.get(keyOf(bearer)));

  return {
    read: (authorization) => readBearer(authorization, kinds),
    peek(bearer) {
      const credential = cache.peek(keyOf(bearer));
      try {
        return credential && verifyForAdmission(bearer, credential);
      } catch {
        return undefined;
      }
    },
    lookUp,
    lookUpFresh(bearer) {
      cache.forget(keyOf(bearer));
      return lookUp(bearer);
    },
    watch: watch.add,
    start() {
      unsubscribe ??= bus.subscribe("bearer-changed", forget);
      watch.start();
    },
    async stop() {
      unsubscribe?.();
      unsubscribe = undefined;
      await watch.stop();
    },
  };
}
