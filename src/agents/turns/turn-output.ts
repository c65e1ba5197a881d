import type { JsonObject } from "@bufbuild/protobuf";
import type { Tx } from "../../platform/postgres/database.ts";
import { type TurnRow, updateTurn } from "./store.ts";
import { endLockedTurn, type TurnEndParts } from "./turn-end.ts";

/** How often a model may give a result that does not fit. */
const mostMisfits = 5;

/** The result of a turn, or why it is none. */
interface Read {
  readonly output?: JsonObject;
  readonly misfit?: string;
}

/** Reads the result of a turn, where one was asked for. */
export async function readOutput(schema: JsonObject | null, result: unknown): Promise<Read> {
  if (!schema) return {};
  // It loads what checks, which few turns need.
  const { findOutputFault } = await import("./output-schema.ts");
  const misfit = findOutputFault(schema, result);
  // The boundary at which what was checked is an object of JSON.
  return misfit === undefined ? { output: result as JsonObject } : { misfit };
}

/** Counts a result that does not fit, of which the model was told; ends the turn after several. */
export async function noteMisfit(parts: TurnEndParts, tx: Tx, turn: TurnRow, misfit: string): Promise<TurnRow> {
  const misfits = turn.misfits + 1;
  if (misfits <= mostMisfits) return updateTurn(tx, turn.id, { misfits });
  const modelFault = `the model gives no result that fits output_schema: ${misfit}`;
  return endLockedTurn(parts, tx, turn, { status: "failed", reason: "output_invalid", modelFault });
}
