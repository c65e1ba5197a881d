import { sql } from "kysely";
import { type Month, monthAt } from "../../limits/month.ts";
import type { Clock } from "../../platform/clock.ts";
import { type Failure, fail } from "../../platform/errors.ts";
import type { LlmPrice } from "../../platform/llm-config.ts";
import type { Queryable, Tx } from "../../platform/postgres/database.ts";
import { capOf } from "./llm-message.ts";
import { readSettings } from "./store.ts";

/** Tokens of one call of a model. */
export interface LlmUsage {
  /** All that went in, those from the provider's cache included. */
  readonly input: number;
  readonly cached: number;
  /** Those that the provider has put into its cache. */
  readonly written: number;
  readonly output: number;
}

const perCent = 10_000;

/** What a call costs in millionths of a US dollar, which is what a token costs at a dollar for a million. */
export const costOf = ({ input, cached, written, output }: LlmUsage, price: LlmPrice): number =>
  Math.ceil(
    (input - cached - written) * price.input +
      cached * price.cachedInput +
      written * price.cacheWrite +
      output * price.output,
  );

/** Makes the failure of a month that has cost its cap in US cents. */
export function capReached(cap: number, { endsAt }: Month): Failure {
  const resetsAt = new Date(endsAt).toISOString();
  const detail = `the bundled LLM has cost its cap of ${cap} cents this month: raise monthly_cap_cents, store a key of your own, or wait until ${resetsAt}`;
  return fail("bundled-llm-budget-exhausted", {}, { detail });
}

/** What was put aside for a call. */
export interface Reservation {
  readonly accountId: string;
  readonly month: Month;
  readonly amount: number;
}

function add(on: Queryable, { accountId, month }: Omit<Reservation, "amount">, amount: number) {
  const first = `${month.name}-01`;
  return sql<{ spent: string }>`
    insert into llm_spending (account_id, month, spent) values (${accountId}, ${first}::date, ${amount})
    on conflict (account_id, month) do update set spent = llm_spending.spent + excluded.spent
    returning spent`.execute(on.sql);
}

/**
 * Puts aside what a call of the bundled LLM may cost. It counts as spent at once, so that of calls that run beside each other
 * one alone passes the cap; a call of which nothing is heard any more has cost that. Throws `bundled-llm-budget-exhausted`.
 */
export async function reserve(tx: Tx, clock: Clock, accountId: string, amount: number): Promise<Reservation> {
  const month = monthAt(clock.now());
  const cap = capOf(await readSettings(tx, accountId));
  // Whoever adds to a month has its row locked until the end of the transaction.
  const { rows } = await add(tx, { accountId, month }, amount);
  if (Number(rows[0]?.spent ?? 0) - amount >= cap * perCent) throw capReached(cap, month);
  return { accountId, month, amount };
}

/** Replaces what was put aside by what the call has cost, in the month in which it began. */
export async function settle(tx: Tx, reservation: Reservation, cost: number): Promise<void> {
  await add(tx, reservation, cost - reservation.amount);
}
