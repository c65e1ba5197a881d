import { type AccountState, lockAccount } from "../accounts/store.ts";
import type { Entitlement } from "../kernel/entitlement.ts";
import type { Limits } from "../limits/limits.ts";
import { monthAt } from "../limits/month.ts";
import { reportedAmountsOf, reportThresholds } from "../limits/quota-events.ts";
import { checksAreDue, findDueChecks, lockDueCheck, scheduleCheck, setNextCheck } from "../limits/store.ts";
import { findUsage, type MonthUsage } from "../limits/usage.ts";
import type { Mailer } from "../mail/mailer.ts";
import { counted } from "../platform/counted.ts";
import { fail } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { DueTask } from "../platform/postgres/due-tasks.ts";
import { endSessions, type SessionEndParts } from "./session-end.ts";

/** Milliseconds until the next check of an account that still has sessions beyond their quota. */
const checkAgainAfter = 1_000;
/** Maximum number of accounts per run of the task. */
const atOnce = 1_000;

const minuteMs = 60_000;

export interface SessionQuotaParts extends SessionEndParts, Pick<PlatformParts, "db" | "clock" | "log"> {
  readonly limits: Limits;
  readonly mailer: Mailer;
}

/**
 * Monthly session minutes of accounts. Sessions of an account that has no minutes left, or is disabled, are rejected or
 * ended.
 */
export interface SessionQuota {
  /**
   * Throws `tier-limit` if the account has no minutes left, and `revoked-key` if the account is disabled. Otherwise
   * schedules a check if the minutes are limited: for the next time at which the account, with one more session, could
   * reach its quota or an amount that triggers a notification.
   */
  admit(tx: Tx, accountId: string, account: AccountState): Promise<void>;
  readonly task: DueTask;
}

/**
 * Returns the next time at which the sessions together will have used one of the amounts (milliseconds). In ms since
 * the epoch; `Infinity` if all amounts are already used.
 */
function nextCrossing(amounts: readonly number[], usedMs: number, sessions: number, now: number): number {
  const ahead = amounts.filter((amount) => amount > usedMs);
  return Math.min(...ahead.map((amount) => now + Math.ceil((amount - usedMs) / sessions)));
}

/**
 * Creates the quota. Usage is not counted continuously. Instead a check is scheduled for the next time at which an
 * account's sessions could reach an amount that triggers a notification, or their quota. Events that make that time
 * earlier reschedule the check; a check that runs too early reschedules itself.
 */
export function createSessionQuota(parts: SessionQuotaParts): SessionQuota {
  const { db, clock, log, limits } = parts;

  const quotaOf = (account: Entitlement): number => limits.of(account).monthlySessionMinutes * minuteMs;

  /**
   * Quota of a session in milliseconds. If its account's tier is lowered, the limit at the session's creation still
   * applies.
   */
  const quotaOfSession = (account: Entitlement, { tier }: MonthUsage["running"][number]): number =>
    Math.max(quotaOf(account), quotaOf({ ...account, tier }));

  /**
   * Returns the next time at which quota or usage changes without an event: the end of the month, or the expiry of an
   * override. In ms since the epoch.
   */
  function validUntil(account: Entitlement): number {
    const ends = limits.overrides(account).map(({ expiresAt }) => Date.parse(expiresAt));
    return Math.min(monthAt(clock.now()).endsAt, ...ends);
  }

  async function admit(tx: Tx, accountId: string, account: AccountState): Promise<void> {
    if (account.disabled_at)
      throw fail("revoked-key", {}, { detail: "the account is closed: restore the account, or ask the operator" });
    const quota = quotaOf(account);
    if (!Number.isFinite(quota)) return;
    const [now, month] = [clock.now(), monthAt(clock.now())];
    const { usedMs, running } = await findUsage(tx, accountId, month);
    if (usedMs >= quota) {
      const resetsAt = new Date(month.endsAt).toISOString();
      const detail = `the account has used its ${counted(quota / minuteMs, "session minute")} of this month: wait until ${resetsAt}, or change the tier`;
      throw fail("tier-limit", { quota: "session_minutes", limit: quota / minuteMs, resets_at: resetsAt }, { detail });
    }
    const crossing = nextCrossing(reportedAmountsOf(quota), usedMs, running.length + 1, now);
    scheduleCheck(tx, accountId, Math.min(crossing, validUntil(account)));
  }

  /** Ends the live sessions that have used up their quota. Returns the sessions that continue. */
  async function endUsedUp(tx: Tx, account: Entitlement, { usedMs, running }: MonthUsage) {
    const isUsedUp = (session: MonthUsage["running"][number]) => usedMs >= quotaOfSession(account, session);
    // A session that is not live yet has used nothing, and is ended by a check after it is live.
    const ended = running.filter((session) => session.liveAt !== null && isUsedUp(session));
    const ids = ended.map(({ id }) => id);
    await endSessions(parts, tx, ids, { reason: "quota" });
    return running.filter((session) => !ended.includes(session));
  }

  async function check(accountId: string): Promise<void> {
    await db.transaction(async (tx) => {
      const account = await lockAccount(tx, accountId);
      const [now, month, quota] = [clock.now(), monthAt(clock.now()), quotaOf(account)];
      if (!(await lockDueCheck(tx, accountId, now))) return;
      const usage = await findUsage(tx, accountId, month);
      if (account.disabled_at) {
        const ids = usage.running.map(({ id }) => id);
        await endSessions(parts, tx, ids, { reason: "destroyed" });
        return setNextCheck(tx, accountId, undefined);
      }
      const minutes = { used: usage.usedMs / minuteMs, limit: quota / minuteMs };
      const state = { accountId, tier: account.tier, quota: "session_minutes", ...minutes, month } as const;
      await reportThresholds(parts, tx, { ...state, isMonthly: true });
      const left = await endUsedUp(tx, account, usage);
      const quotas = left.map((session) => quotaOfSession(account, session));
      if (left.length === 0 || !quotas.some(Number.isFinite)) return setNextCheck(tx, accountId, undefined);
      const crossing = nextCrossing([...reportedAmountsOf(quota), ...quotas], usage.usedMs, left.length, now);
      const isOverdue = quotas.some((each) => each <= usage.usedMs);
      setNextCheck(tx, accountId, isOverdue ? now + checkAgainAfter : Math.min(crossing, validUntil(account)));
    });
  }

  async function checkAll(): Promise<void> {
    for (const accountId of await findDueChecks(db, clock.now(), atOnce)) {
      await check(accountId).catch((error: unknown) =>
        log.warn({ err: error, account_id: accountId }, "failed to check session minutes of account"),
      );
    }
  }

  return {
    admit,
    task: {
      isDue: () => checksAreDue(clock.now()),
      run: checkAll,
      failureMessage: "failed to check session minutes of accounts",
    },
  };
}
