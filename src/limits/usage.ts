import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { dayAt, type Month, splitByDay } from "./month.ts";
import { readUsage, type StoredUsage, type UsageDay, upsertUsage } from "./store.ts";

/** The time of a session that counts: from when it was live to its end. */
export interface MeteredSpan {
  readonly accountId: string;
  readonly from: number;
  readonly to: number;
}

/** What an account has used in a month, its running sessions until this moment included. */
export interface MonthUsage {
  /** The days on which it has used something, in their order. */
  readonly days: readonly UsageDay[];
  readonly usedMs: number;
  /** Its sessions that have not ended, those that are not live yet included. */
  readonly running: StoredUsage["running"];
}

/** Collects days of accounts: what belongs to one day is one row. */
function collect(rows: Iterable<UsageDay & { readonly accountId: string }>) {
  const byKey = new Map<string, UsageDay & { readonly accountId: string }>();
  for (const row of rows) {
    const key = `${row.accountId} ${row.day}`;
    const { sessionMs, sessions } = byKey.get(key) ?? { sessionMs: 0, sessions: 0 };
    byKey.set(key, { ...row, sessionMs: row.sessionMs + sessionMs, sessions: row.sessions + sessions });
  }
  // In one order for everybody, so that two who meter the same accounts do not wait for each other.
  return [...byKey.keys()].sort().flatMap((key) => byKey.get(key) ?? []);
}

/** The days of a span; it counts as a session on its first one. */
function daysOf({ accountId, from, to }: MeteredSpan) {
  const [first, ...others] = splitByDay(from, to);
  if (!first) return [{ accountId, day: dayAt(from), sessionMs: 0, sessions: 1 }];
  const rows = others.map(({ day, ms }) => ({ accountId, day, sessionMs: ms, sessions: 0 }));
  return [{ accountId, day: first.day, sessionMs: first.ms, sessions: 1 }, ...rows];
}

/** Adds the time of sessions that have just ended to what their accounts have used, in the transaction of their end. */
export function meter(tx: Tx, spans: readonly MeteredSpan[]): void {
  if (spans.length > 0) tx.send(upsertUsage(tx, collect(spans.flatMap(daysOf))));
}

/** Reads what an account has used in a month. */
export async function findUsage(db: Queryable, accountId: string, month: Month): Promise<MonthUsage> {
  const { days, running, now } = await readUsage(db, accountId, month);
  const isInMonth = ({ day }: UsageDay): boolean => day.startsWith(month.name);
  const ongoing = running.flatMap(({ liveAt }) =>
    liveAt === null ? [] : daysOf({ accountId, from: liveAt, to: now }),
  );
  const all = collect([...days.map((day) => ({ ...day, accountId })), ...ongoing.filter(isInMonth)]);
  return { days: all, usedMs: all.reduce((sum, { sessionMs }) => sum + sessionMs, 0), running };
}
