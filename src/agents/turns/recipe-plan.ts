import { create, fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { type Recipe, RecipeSchema, type RecipeStep, RecipeStepSchema } from "../../gen/pilothouse/v1/recipe_pb.ts";
import { compileWriter } from "../../platform/rest-json/writer.ts";
import type { Sealer } from "../../platform/secrets/secrets-sealer.ts";
import { escapePageMarkers } from "./page.ts";
import type { TurnRow } from "./store.ts";

/** Steps of a recipe run, including the navigation to the start URL. */
export interface RecipePlan {
  readonly name: string;
  readonly description: string | undefined;
  readonly steps: readonly RecipeStep[];
  /** Number of the first step: 0 for the navigation to the start URL. The recipe's own steps are counted from 1. */
  readonly first: 0 | 1;
}

const contextOf = (accountId: string) => ({ accountId, purpose: "recipe-plan" });

/** Encrypts a recipe with its parameters filled in. */
export function sealPlan(sealer: Sealer, accountId: string, recipe: Recipe): Buffer {
  return sealer.seal(toBinary(RecipeSchema, recipe), contextOf(accountId));
}

/** Decrypts the plan of a turn that runs a recipe. */
export function openPlan(sealer: Sealer, { account_id: accountId, recipe_plan: sealed }: TurnRow): RecipePlan {
  if (!sealed) throw new Error("the turn has a recipe but no plan");
  const {
    name,
    description,
    startUrl: url,
    steps,
  } = fromBinary(RecipeSchema, sealer.open(sealed, contextOf(accountId)));
  if (url === undefined) return { name, description, steps, first: 1 };
  const start = create(RecipeStepSchema, { do: { case: "navigate", value: { url } } });
  return { name, description, steps: [start, ...steps], first: 0 };
}

const writeStep = compileWriter(RecipeStepSchema);

/** Action of a step, as REST JSON. */
const toJson = (step: RecipeStep): JsonObject => Object(writeStep(step).do);

/** Truncates a text. Replaces half of a split surrogate pair, because PostgreSQL rejects it. */
const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();

/** Arguments of a step for display: only strings, truncated, without typed text. */
export function displayedArguments(step: RecipeStep): JsonObject {
  const { kind, action, condition, ...others } = toJson(step);
  const fields = Object.entries(Object(action ?? condition ?? others));
  const kept = fields.filter(([name, value]) => typeof value === "string" && (name !== "text" || kind !== "interact"));
  return Object.fromEntries(kept.map(([name, value]) => [name, cut(String(value), 500)]));
}

/** Maximum characters of a step in the message to the model; `failed` applies to the step to repair. */
const longest = { step: 200, failed: 4_000 };

/** Returns the message that asks the model to repair the step at `index`, which failed because of `why`. */
export function repairNote(
  { name, description, steps, first }: RecipePlan,
  index: number,
  why: string,
  page: string,
): string {
  const line = (step: RecipeStep, at: number, length: number): string => {
    const purpose = step.description === undefined ? "" : `  What is expected: ${cut(step.description, length)}`;
    return `${at + first}. ${cut(JSON.stringify(toJson(step)), length)}${purpose}`;
  };
  const failed = steps[index];
  const number = index + first;
  // Escaped, because the cause may quote the page.
  const cause = escapePageMarkers(JSON.stringify(why));
  return `A recipe is running: ${JSON.stringify(name)}${description === undefined ? "" : `: ${description}`}
Its steps:
${steps.map((step, at) => line(step, at, longest.step)).join("\n")}

Step ${number} has failed: ${cause}
${failed ? line(failed, index, longest.failed) : ""}

Repair it: do what this step was meant to do, and nothing of later steps. Then call resume_recipe with the number of the
step to run next: ${number + 1}, or ${number} to retry it. If it cannot be repaired, call done and say why, which ends the
recipe.
The page is now:
${page}`;
}

/** Returns the message to the model that the recipe was completed. */
export const completionNote = ({ name, steps }: RecipePlan): string =>
  `The recipe ${JSON.stringify(name)} was completed, all ${steps.length} steps of it.`;
