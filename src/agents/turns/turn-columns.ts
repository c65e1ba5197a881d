import { failFields } from "../../platform/errors.ts";
import type { Queryable } from "../../platform/postgres/database.ts";
import { llmPriceOf } from "../llm/llm-prices.ts";
import { choosePayer, type Payer, type PayerParts } from "../llm/payer.ts";
import type { StoredProvider } from "../llm/tables.ts";
import type { StoredTurnLimits } from "../sessions/tables.ts";
import type { TurnRow } from "./store.ts";
import { usageOf } from "./turn-message.ts";

const defaultLimits: StoredTurnLimits = { steps: 50, seconds: 600, tokens: 1_000_000 };

/** Turn settings of an agent session. */
interface TurnSettings {
  readonly model: string | null;
  readonly limits: Partial<StoredTurnLimits> | null;
}

/** Returns the limits of a turn as JSON. Limits that the agent session does not set have their defaults. */
export const limitsOf = ({ limits }: Pick<TurnSettings, "limits">): string =>
  JSON.stringify({ ...defaultLimits, ...limits });

/**
 * Chooses the credential that pays for a turn, and returns its columns. Throws like `choosePayer`. Throws
 * `validation-failed` if the turn has a cost limit and its model has no known price.
 */
export async function choosePayerColumns(
  db: Queryable,
  parts: PayerParts,
  { model, limits }: TurnSettings,
  by: { readonly accountId: string; readonly header: string | undefined },
) {
  const payer = await choosePayer(db, parts, { ...by, named: model ?? undefined });
  const isPriced = llmPriceOf(payer, parts.config.bundledLlm) !== undefined;
  if (limits?.costCents !== undefined && !isPriced) {
    const what = `requires a model with a known price, and the price of ${payer.model} is unknown: leave the limit out, or choose another model`;
    throw failFields("validation-failed", { "limits.cost_cents": what });
  }
  return {
    credential: payer.source,
    provider: payer.provider,
    model: payer.model,
    vision: payer.vision,
    cost: isPriced ? "0" : null,
  };
}

/** Returns the credential that pays for a turn; undefined while a recipe runs without a model. */
export function payerOf({ credential: source, provider, model, vision }: TurnRow): Payer | undefined {
  return source === "none" ? undefined : { source, provider: provider as StoredProvider, model, vision };
}

/** Returns the limit that a turn has reached, if any. */
export function limitReached(turn: TurnRow): string | undefined {
  const { limits, steps, worked_ms: worked } = turn;
  const { tokens, costCents = 0 } = usageOf(turn);
  if (Number(worked) >= limits.seconds * 1_000) return "seconds";
  if (steps >= limits.steps) return "steps";
  if (tokens >= limits.tokens) return "tokens";
  return limits.costCents !== undefined && costCents >= limits.costCents ? "cost_cents" : undefined;
}
