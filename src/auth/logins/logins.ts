import { randomBytes } from "node:crypto";
import { listMemberships, type Membership } from "../../accounts/memberships.ts";
import type { UserRow } from "../../accounts/users.ts";
import type { LoginPrincipal } from "../../kernel/call.ts";
import { type Failure, fail } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Queryable, Tx } from "../../platform/postgres/database.ts";
import { hashSecret, matchesHash } from "../../platform/secrets/secrets.ts";
import type { Client } from "./client.ts";
import { newSecrets, nextSecrets, type PairSecrets, parseRefreshToken, writePair } from "./login-tokens.ts";
import {
  deleteExpired,
  endLogins,
  findPair,
  insertLogin,
  insertPair,
  type LoginsToEnd,
  listLogins,
  recordDevice,
  spendPair,
  stepUpPair,
  touchLogin,
} from "./store.ts";

const day = 86_400_000;

/** Milliseconds. `login`: maximum age of a login. `repeat`: period for requesting a lost refresh response again. */
const lifetimes = { access: 900_000, refresh: 30 * day, login: 180 * day, repeat: 10_000 };

export interface IssuedTokens {
  readonly tokens: PairSecrets;
  readonly expiresAt: Date;
  readonly refreshExpiresAt: Date;
  readonly userId: string;
  readonly accountId: string;
  readonly hasSecondFactor: boolean;
}

type IssuedPair = Omit<IssuedTokens, "userId" | "hasSecondFactor">;

export interface OpenedLogin extends IssuedTokens {
  readonly loginId: string;
  /** Whether the user has logged in before, but never with this program from this network. */
  readonly isNewDevice: boolean;
}

export interface LoginRequest {
  readonly user: Pick<UserRow, "id" | "totp_enrolled_at">;
  /** Default: the first enabled account that the user joined. */
  readonly accountId: string | undefined;
  readonly client: Client;
}

export interface Logins {
  /** Creates a login. Throws `forbidden` if the account is disabled or the user is not a member. */
  open(tx: Tx, request: LoginRequest): Promise<OpenedLogin>;
  /**
   * Continues a login with its refresh token. Throws `invalid-auth-token`, or `forbidden` like `open`. Reusing a spent
   * token ends the login, except for a retry within 10 s while the new refresh token is unused.
   */
  refresh(refreshToken: string, accountId: string | undefined): Promise<IssuedTokens>;
  /** Ends logins on every gateway after the commit, and returns their identifiers. */
  end(tx: Tx, logins: LoginsToEnd): Promise<string[]>;
  /** Lists the active logins of a user, newest first. */
  list(query: { userId: string; before: string | undefined; limit: number }): ReturnType<typeof listLogins>;
  /** Records when the user passed a check of the second factor. The successors of the token pair inherit the time. */
  stepUp(tx: Tx, login: Pick<LoginPrincipal, "tokenId" | "loginId">, at: Date): Promise<void>;
  /** Deletes expired logins and tokens. */
  sweep(): Promise<void>;
}

const invalidToken = (): Failure =>
  fail("invalid-auth-token", {}, { detail: "the refresh token is malformed, spent or expired; log in again" });

/** Returns the account of a login: the requested account, or the first enabled account. Throws `forbidden`. */
async function findAccount(db: Queryable, userId: string, accountId: string | undefined): Promise<Membership> {
  const all = await listMemberships(db, userId);
  const matching = accountId === undefined ? all : all.filter((membership) => membership.accountId === accountId);
  const [found] = matching.filter(({ isDisabled }) => !isDisabled);
  if (found) return found;
  if (all.length === 0)
    throw fail("forbidden", {}, { detail: "the user is not a member of any account: ask an owner for a new invite" });
  const detail = matching.length > 0 ? "the account is disabled" : "the user is not a member of the account";
  throw fail("forbidden", {}, { detail });
}

export function createLogins(parts: Pick<PlatformParts, "db" | "bus" | "ids" | "clock">): Logins {
  const { db, bus, ids, clock } = parts;
  type Pair = NonNullable<Awaited<ReturnType<typeof findPair>>>;

  /** Inserts a token pair with the given secrets. */
  async function issue(
    tx: Tx,
    secrets: PairSecrets,
    of: { id: string; loginId: string; accountId: string; endsAt: Date; steppedUpAt: Date | null; now: number },
  ): Promise<IssuedPair> {
    const until = (lifetime: number): Date => new Date(Math.min(of.now + lifetime, of.endsAt.getTime()));
    const [expiresAt, refreshExpiresAt] = [until(lifetimes.access), until(lifetimes.refresh)];
    await insertPair(tx, {
      id: of.id,
      login_id: of.loginId,
      account_id: of.accountId,
      stepped_up_at: of.steppedUpAt,
      access_hash: hashSecret(secrets.access),
      refresh_hash: hashSecret(secrets.refresh),
      access_expires_at: expiresAt,
      refresh_expires_at: refreshExpiresAt,
    });
    return { tokens: writePair(of.id, secrets), expiresAt, refreshExpiresAt, accountId: of.accountId };
  }

  async function end(tx: Tx, which: LoginsToEnd): Promise<string[]> {
    const ended = await endLogins(tx, which, new Date(clock.now()));
    tx.afterCommit(() => {
      for (const id of ended) bus.publish("bearer-changed", id);
    });
    return ended;
  }

  /** Returns the successor of a pair that was spent in the last 10 s, if the successor is not spent. */
  async function repeat(spent: string, pair: Pair | undefined, now: number): Promise<IssuedPair | undefined> {
    const { seed, successor_id: id, spent_at: spentAt } = pair ?? {};
    const isFresh = spentAt && now - spentAt.getTime() <= lifetimes.repeat;
    const next = id && isFresh ? await findPair(db, id) : undefined;
    if (!seed || !next || next.spent_at) return undefined;
    return {
      tokens: writePair(next.id, nextSecrets(spent, seed)),
      expiresAt: next.access_expires_at,
      refreshExpiresAt: next.refresh_expires_at,
      accountId: next.account_id,
    };
  }

  /** Spends a refresh token for the next pair. Returns undefined if a concurrent request has spent the token. */
  async function rotate(
    secret: string,
    pair: Pair,
    { accountId = pair.account_id, now }: { readonly accountId: string | undefined; readonly now: number },
  ): Promise<IssuedPair | undefined> {
    const account = await findAccount(db, pair.user_id, accountId);
    const id = ids.next("tok");
    const seed = randomBytes(32);
    return db.transaction(async (tx) => {
      const spent = await spendPair(tx, pair.id, { spentAt: new Date(now), successorId: id, seed });
      if (!spent) return undefined;
      await touchLogin(tx, pair.login_id, new Date(now));
      const of = { id, loginId: pair.login_id, endsAt: pair.ends_at, steppedUpAt: spent.stepped_up_at, now };
      return issue(tx, nextSecrets(secret, seed), { ...of, accountId: account.accountId });
    });
  }

  async function refresh(token: string, accountId: string | undefined): Promise<IssuedTokens> {
    // Time of the request: waiting in a queue must not turn a timely retry into reuse.
    const now = clock.now();
    const parsed = parseRefreshToken(token);
    const pair = parsed && (await findPair(db, parsed.id));
    if (!pair || !matchesHash(parsed.secret, pair.refresh_hash)) throw invalidToken();
    if (pair.refresh_expires_at.getTime() <= now) throw invalidToken();
    const rotated = pair.spent_at ? undefined : await rotate(parsed.secret, pair, { accountId, now });
    const next = rotated ?? (await repeat(parsed.secret, pair.spent_at ? pair : await findPair(db, pair.id), now));
    if (next) return { ...next, userId: pair.user_id, hasSecondFactor: pair.totp_enrolled_at !== null };
    await db.transaction((tx) => end(tx, { userId: pair.user_id, id: pair.login_id }));
    throw invalidToken();
  }

  return {
    end,
    async open(tx, { user, accountId, client }) {
      const account = await findAccount(tx, user.id, accountId);
      const now = clock.now();
      const loginId = ids.next("lgn");
      const endsAt = new Date(now + lifetimes.login);
      await insertLogin(tx, {
        id: loginId,
        user_id: user.id,
        created_at: new Date(now),
        last_used_at: new Date(now),
        ends_at: endsAt,
        client_address: client.address,
        user_agent: client.userAgent,
      });
      const { isFirst, isNew } = await recordDevice(tx, { userId: user.id, ...client }, new Date(now));
      const of = { id: ids.next("tok"), loginId, accountId: account.accountId, endsAt, steppedUpAt: null, now };
      const issued = await issue(tx, newSecrets(), of);
      const hasSecondFactor = user.totp_enrolled_at !== null;
      return { ...issued, loginId, userId: user.id, hasSecondFactor, isNewDevice: isNew && !isFirst };
    },
    refresh,
    list(query) {
      const now = clock.now();
      return listLogins(db, { ...query, now: new Date(now), oldest: new Date(now - lifetimes.refresh) });
    },
    async stepUp(tx, { tokenId, loginId }, at) {
      await stepUpPair(tx, tokenId, at);
      tx.afterCommit(() => bus.publish("bearer-changed", loginId));
    },
    async sweep() {
      const now = clock.now();
      await deleteExpired(db, { now: new Date(now), oldest: new Date(now - lifetimes.refresh - day) });
    },
  };
}
