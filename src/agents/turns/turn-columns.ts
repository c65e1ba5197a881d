import { failFields } from "../../platform/errors.ts";
import type { Queryable } from "../../platform/postgres/database.ts";
import { choosePayer, type Payer, type PayerParts } from "../llm/payer.ts";
import { priceOf } from "../llm/prices.ts";
import type { StoredProvider } from "../llm/tables.ts";
import type { StoredTurnLimits } from "../sessions/tables.ts";
import type { TurnRow } from "./store.ts";

/** What a turn may take of which nothing else was said. */
const usual: StoredTurnLimits = { steps: 50, seconds: 600, tokens: 1_000_000 };

/** What was said of the turns of an agent session. */
interface Said {
  readonly model: string | null;
  readonly limits: Partial<StoredTurnLimits> | null;
}

/** What the turns of an agent session may take. */
export const limitsOf = ({ limits }: Pick<Said, "limits">): string => JSON.stringify({ ...usual, ...limits });

/** What a turn is paid with. Throws what the interface says of an account that has nothing for it. */
export async function choosePayerColumns(
  db: Queryable,
  parts: PayerParts,
  { model, limits }: Said,
  by: { readonly accountId: string; readonly header: string | undefined },
) {
  const payer = await choosePayer(db, parts, { ...by, named: model ?? undefined });
  const isPriced = priceOf(payer, parts.config.bundledLlm) !== undefined;
  if (limits?.costCents !== undefined && !isPriced) {
    const what = `holds for models whose price is known, and that of ${payer.model} is not`;
    throw failFields("validation-failed", { "limits.cost_cents": what });
  }
  return { credential: payer.source, provider: payer.provider, model: payer.model, cost: isPriced ? "0" : null };
}

/** What a turn is paid with; undefined while it runs a recipe that has needed no model. */
export function payerOf({ credential: source, provider, model }: TurnRow): Payer | undefined {
  return source === "none" ? undefined : { source, provider: provider as StoredProvider, model };
}
