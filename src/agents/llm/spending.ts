import { sql } from "kysely";
import { type Month, monthAt } from "../../limits/month.ts";
import type { Clock } from "../../platform/clock.ts";
import { counted } from "../../platform/counted.ts";
import { type Failure, fail } from "../../platform/errors.ts";
import type { LlmPrice } from "../../platform/llm-config.ts";
import type { Queryable, Tx } from "../../platform/postgres/database.ts";
import { capOf } from "./llm-message.ts";
import { readSettings } from "./store.ts";

export interface LlmUsage {
  /** All input tokens, including `cached` and `written`. */
  readonly input: number;
  /** Input tokens read from the provider's cache. */
  readonly cached: number;
  /** Input tokens written to the provider's cache. */
  readonly written: number;
  readonly output: number;
}

const microsPerCent = 10_000;

/**
 * Cost of a call in millionths of a US dollar, rounded up. A price in dollars per million tokens equals millionths of a
 * dollar per token.
 */
export const costOf = ({ input, cached, written, output }: LlmUsage, price: LlmPrice): number =>
  Math.ceil(
    (input - cached - written) * price.input +
      cached * price.cachedInput +
      written * price.cacheWrite +
      output * price.output,
  );

/** Creates the failure for a reached monthly cap. `cap` is in US cents. */
export function capReached(cap: number, { endsAt }: Month): Failure {
  const resetsAt = new Date(endsAt).toISOString();
  const detail = `the monthly cap of ${counted(cap, "cent")} for the bundled LLM is reached: raise monthly_cap_cents, store a key of your own, or wait until ${resetsAt}`;
  return fail("bundled-llm-budget-exhausted", {}, { detail });
}

export interface Reservation {
  readonly accountId: string;
  readonly month: Month;
  /** Millionths of a US dollar. */
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
 * Reserves the maximum cost of a bundled LLM call. The reservation counts as spent at once, so that only one of several
 * concurrent calls can exceed the cap. If the call is never settled, the reservation stays spent. Throws
 * `bundled-llm-budget-exhausted` if the cap was already reached.
 */
export async function reserve(tx: Tx, clock: Clock, accountId: string, amount: number): Promise<Reservation> {
  const month = monthAt(clock.now());
  const cap = capOf(await readSettings(tx, accountId));
  // The upsert locks the month's row until the transaction ends.
  const { rows } = await add(tx, { accountId, month }, amount);
  if (Number(rows[0]?.spent ?? 0) - amount >= cap * microsPerCent) throw capReached(cap, month);
  return { accountId, month, amount };
}

/** Replaces a reservation by the actual cost, in the month in which the call started. */
export async function settleReservation(tx: Tx, reservation: Reservation, cost: number): Promise<void> {
  await add(tx, reservation, cost - reservation.amount);
}
