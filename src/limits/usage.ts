import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { dayAt, type Month, splitByDay } from "./month.ts";
import { readUsage, type StoredUsage, type UsageDay, upsertUsage } from "./store.ts";

/** Metered time of a session, from going live to its end. */
export interface MeteredSpan {
  readonly accountId: string;
  readonly from: number;
  readonly to: number;
}

/** Usage of an account in a month, including running sessions up to now. */
export interface MonthUsage {
  /** Days with usage, in order. */
  readonly days: readonly UsageDay[];
  readonly usedMs: number;
  /** Sessions that have not ended, including those not live yet. */
  readonly running: StoredUsage["running"];
}

/** Merges rows of the same account and day. */
function collect(rows: Iterable<UsageDay & { readonly accountId: string }>) {
  const byKey = new Map<string, UsageDay & { readonly accountId: string }>();
  for (const row of rows) {
    const key = `${row.accountId} ${row.day}`;
    const { sessionMs, sessions } = byKey.get(key) ?? { sessionMs: 0, sessions: 0 };
    byKey.set(key, { ...row, sessionMs: row.sessionMs + sessionMs, sessions: row.sessions + sessions });
  }
  // A common order prevents deadlocks between transactions that meter the same accounts.
  return [...byKey.keys()].sort().flatMap((key) => byKey.get(key) ?? []);
}

/** Splits a span into days. The session counts on its first day. */
function daysOf({ accountId, from, to }: MeteredSpan) {
  const [first, ...others] = splitByDay(from, to);
  if (!first) return [{ accountId, day: dayAt(from), sessionMs: 0, sessions: 1 }];
  const rows = others.map(({ day, ms }) => ({ accountId, day, sessionMs: ms, sessions: 0 }));
  return [{ accountId, day: first.day, sessionMs: first.ms, sessions: 1 }, ...rows];
}

/** Adds the time of ended sessions to their accounts' usage, in the transaction of their end. */
export function meter(tx: Tx, spans: readonly MeteredSpan[]): void {
  if (spans.length > 0) tx.send(upsertUsage(tx, collect(spans.flatMap(daysOf))));
}

/** Returns the usage of an account in a month. */
export async function findUsage(db: Queryable, accountId: string, month: Month): Promise<MonthUsage> {
  const { days, running, now } = await readUsage(db, accountId, month);
  const isInMonth = ({ day }: UsageDay): boolean => day.startsWith(month.name);
  const ongoing = running.flatMap(({ liveAt }) =>
    liveAt === null ? [] : daysOf({ accountId, from: liveAt, to: now }),
  );
  const all = collect([...days.map((day) => ({ ...day, accountId })), ...ongoing.filter(isInMonth)]);
  return { days: all, usedMs: all.reduce((sum, { sessionMs }) => sum + sessionMs, 0), running };
}
