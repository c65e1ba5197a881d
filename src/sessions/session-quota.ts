import { type AccountState, lockAccount } from "../accounts/store.ts";
import type { Entitlement } from "../kernel/entitlement.ts";
import type { Limits } from "../limits/limits.ts";
import { monthAt } from "../limits/month.ts";
import { amountsToldOf, tellThresholds } from "../limits/quota-events.ts";
import { findDueLooks, lookBy, setLook, takeLook } from "../limits/store.ts";
import { findUsage, type MonthUsage } from "../limits/usage.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Clock } from "../platform/clock.ts";
import { fail } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import type { RepeatedWork } from "../platform/repeated-job.ts";
import { endSessions, type SessionEndParts } from "./session-end.ts";

/** Milliseconds between two questions for what is due, and accounts that are looked at in one turn. */
const every = 1_000;
const atOnce = 1_000;

const aMinute = 60_000;

export interface SessionQuotaParts extends SessionEndParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: Limits;
  readonly mailer: Mailer;
}

/** The month's minutes of accounts: no session of an account begins or goes on that has none left, or is disabled. */
export interface SessionQuota {
  /**
   * Throws `tier-limit` when an account has no minutes left, and `revoked-key` when it was disabled a moment ago. Else the
   * account, which is locked, is looked at when one more session may have used them up.
   */
  admit(tx: Tx, accountId: string, account: AccountState): Promise<void>;
  readonly job: RepeatedWork;
}

/** When sessions that take time together have used the next of some amounts. `Infinity` when none is ahead. */
function nextCrossing(amounts: readonly number[], usedMs: number, sessions: number, now: number): number {
  const ahead = amounts.filter((amount) => amount > usedMs);
  return Math.min(...ahead.map((amount) => now + Math.ceil((amount - usedMs) / sessions)));
}

/**
 * Makes the quota. Nothing is counted while sessions run: it is known when the sessions of an account, all of them live
 * and none ending, would have used the next part of what it has, and the account is looked at then. What makes that come
 * sooner (a create, another limit) moves the look; what makes it later is found out by the look.
 */
export function createSessionQuota(parts: SessionQuotaParts): SessionQuota {
  const { db, clock, log, limits } = parts;

  const quotaOf = (account: Entitlement): number => limits.of(account).monthlySessionMinutes * aMinute;

  /** What a session may use up: it keeps the limit that it was created under when its account's tier falls. */
  const quotaOfSession = (account: Entitlement, { tier }: MonthUsage["running"][number]): number =>
    Math.max(quotaOf(account), tier === null ? 0 : quotaOf({ ...account, tier }));

  /** Until when what an account has left can be told: the month's end, or that of what the operator has arranged. */
  function validUntil(account: Entitlement): number {
    const ends = limits.overrides(account).map(({ expiresAt }) => Date.parse(expiresAt));
    return Math.min(monthAt(clock.now()).endsAt, ...ends);
  }

  async function admit(tx: Tx, accountId: string, account: AccountState): Promise<void> {
    if (account.disabled_at)
      throw fail("revoked-key", {}, { detail: "the account is closed: ask the operator, or restore it" });
    const quota = quotaOf(account);
    if (!Number.isFinite(quota)) return;
    const [now, month] = [clock.now(), monthAt(clock.now())];
    const { usedMs, running } = await findUsage(tx, accountId, month);
    if (usedMs >= quota) {
      const detail = `the account has used the ${quota / aMinute} session minutes of its month`;
      const resetsAt = new Date(month.endsAt).toISOString();
      throw fail("tier-limit", { quota: "session_minutes", limit: quota / aMinute, resets_at: resetsAt }, { detail });
    }
    const crossing = nextCrossing(amountsToldOf(quota), usedMs, running.length + 1, now);
    lookBy(tx, accountId, Math.min(crossing, validUntil(account)));
  }

  /** Ends the sessions of an account that have nothing left to use; gives those that go on. */
  async function endUsedUp(tx: Tx, account: Entitlement, { usedMs, running }: MonthUsage) {
    const isUsedUp = (session: MonthUsage["running"][number]) => usedMs >= quotaOfSession(account, session);
    // One that is not live yet has used nothing: it is ended as soon as it is.
    const ended = running.filter((session) => session.liveAt !== null && isUsedUp(session));
    const ids = ended.map(({ id }) => id);
    await endSessions(parts, tx, ids, { reason: "quota" });
    return running.filter((session) => !ended.includes(session));
  }

  async function look(accountId: string): Promise<void> {
    await db.transaction(async (tx) => {
      const account = await lockAccount(tx, accountId);
      const [now, month, quota] = [clock.now(), monthAt(clock.now()), quotaOf(account)];
      if (!(await takeLook(tx, accountId, now))) return;
      const usage = await findUsage(tx, accountId, month);
      if (account.disabled_at) {
        const ids = usage.running.map(({ id }) => id);
        await endSessions(parts, tx, ids, { reason: "destroyed" });
        return setLook(tx, accountId, undefined);
      }
      const minutes = { used: usage.usedMs / aMinute, limit: quota / aMinute };
      const state = { accountId, tier: account.tier, quota: "session_minutes", ...minutes, month } as const;
      await tellThresholds(parts, tx, { ...state, isMonthly: true });
      const left = await endUsedUp(tx, account, usage);
      const quotas = left.map((session) => quotaOfSession(account, session));
      if (left.length === 0 || !quotas.some(Number.isFinite)) return setLook(tx, accountId, undefined);
      const crossing = nextCrossing([...amountsToldOf(quota), ...quotas], usage.usedMs, left.length, now);
      const isOverdue = quotas.some((each) => each <= usage.usedMs);
      setLook(tx, accountId, isOverdue ? now + every : Math.min(crossing, validUntil(account)));
    });
  }

  async function lookAtAll(): Promise<void> {
    for (const accountId of await findDueLooks(db, clock.now(), atOnce)) {
      await look(accountId).catch((error: unknown) =>
        log.warn({ err: error, account_id: accountId }, "the minutes of an account cannot be looked at now"),
      );
    }
  }

  return {
    admit,
    job: { run: lookAtAll, every, complaint: "the minutes of accounts cannot be looked at at the moment" },
  };
}
