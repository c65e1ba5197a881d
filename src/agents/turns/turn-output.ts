import type { JsonObject } from "@bufbuild/protobuf";
import type { Tx } from "../../platform/postgres/database.ts";
import { type TurnRow, updateTurn } from "./store.ts";
import { endLockedTurn, type TurnEndParts } from "./turn-end.ts";

/** Maximum number of results of a turn that do not match the schema. The next such result ends the turn. */
const maxMisfits = 5;

/** The result of a turn, or why the value does not match the schema. */
interface ParsedOutput {
  readonly output?: JsonObject;
  readonly misfit?: string;
}

/** Validates the result of a turn, if a schema was requested. */
export async function readOutput(schema: JsonObject | null, result: unknown): Promise<ParsedOutput> {
  if (!schema) return {};
  // Loaded on demand, because few turns need a validator.
  const { findOutputFault } = await import("./output-schema.ts");
  const misfit = findOutputFault(schema, result);
  // Cast: the schema has validated that the result is an object.
  return misfit === undefined ? { output: result as JsonObject } : { misfit };
}

/** Counts a result that does not match and was reported to the model. Ends the turn after more than `maxMisfits`. */
export async function noteMisfit(parts: TurnEndParts, tx: Tx, turn: TurnRow, misfit: string): Promise<TurnRow> {
  const misfits = turn.misfits + 1;
  if (misfits <= maxMisfits) return updateTurn(tx, turn.id, { misfits });
  const modelFault = `the model returned no result that matches output_schema: ${misfit}`;
  return endLockedTurn(parts, tx, turn, { status: "failed", reason: "output_invalid", modelFault });
}
