import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { dayAt, type Month, splitByDay } from "./month.ts";
import { readUsage, type StoredUsage, type UsageDay, upsertUsage } from "./store.ts";

/** Metered time of a session, from going live to its end, or of a fetch. `from` and `to` are in Unix milliseconds. */
export interface MeteredSpan {
  readonly accountId: string;
  readonly from: number;
  readonly to: number;
  readonly isFetch: boolean;
}

/** Usage of an account in a month, including running sessions and fetches up to now. */
export interface MonthUsage {
  /** Days with usage, in order. */
  readonly days: readonly UsageDay[];
  readonly usedMs: number;
  /** Sessions and fetches that have not ended, including those not live yet. */
  readonly running: StoredUsage["running"];
}

export function nothingUsed(): Omit<UsageDay, "day"> {
  return { sessionMs: 0, sessions: 0, fetchMs: 0, fetches: 0 };
}

/** Merges rows of the same account and day. */
function collect(rows: Iterable<UsageDay & { readonly accountId: string }>) {
  const byKey = new Map<string, UsageDay & { readonly accountId: string }>();
  for (const row of rows) {
    const key = `${row.accountId} ${row.day}`;
    const { sessionMs, sessions, fetchMs, fetches } = byKey.get(key) ?? nothingUsed();
    byKey.set(key, {
      ...row,
      sessionMs: row.sessionMs + sessionMs,
      sessions: row.sessions + sessions,
      fetchMs: row.fetchMs + fetchMs,
      fetches: row.fetches + fetches,
    });
  }
  // A common order prevents deadlocks between transactions that meter the same accounts.
  return [...byKey.keys()].sort().flatMap((key) => byKey.get(key) ?? []);
}

/** Splits a span into days. The session or fetch counts on its first day. */
function daysOf({ accountId, from, to, isFetch }: MeteredSpan) {
  const row = (day: string, ms: number, count: number) =>
    isFetch
      ? { ...nothingUsed(), accountId, day, fetchMs: ms, fetches: count }
      : { ...nothingUsed(), accountId, day, sessionMs: ms, sessions: count };
  const [first = { day: dayAt(from), ms: 0 }, ...others] = splitByDay(from, to);
  return [row(first.day, first.ms, 1), ...others.map(({ day, ms }) => row(day, ms, 0))];
}

/** Adds the time of ended sessions and fetches to their accounts' usage, in the transaction of their end. */
export function meter(tx: Tx, spans: readonly MeteredSpan[]): void {
  if (spans.length > 0) tx.send(upsertUsage(tx, collect(spans.flatMap(daysOf))));
}

/** Returns the usage of an account in a month. */
export async function findUsage(db: Queryable, accountId: string, month: Month): Promise<MonthUsage> {
  const { days, running, now } = await readUsage(db, accountId, month);
  const isInMonth = ({ day }: UsageDay): boolean => day.startsWith(month.name);
  const ongoing = running.flatMap(({ liveAt, fetchBrowser }) =>
    liveAt === null ? [] : daysOf({ accountId, from: liveAt, to: now, isFetch: fetchBrowser !== null }),
  );
  const all = collect([...days.map((day) => ({ ...day, accountId })), ...ongoing.filter(isInMonth)]);
  return { days: all, usedMs: all.reduce((sum, { sessionMs, fetchMs }) => sum + sessionMs + fetchMs, 0), running };
}
