import { create, fromBinary } from "@bufbuild/protobuf";
import {
  type CreateRecipeRequest,
  CreateRecipeRequestSchema,
  type Recipe,
  RecipeSchema,
} from "../../gen/pilothouse/v1/recipe_pb.ts";
import { type Failure, type FieldFault, fail, failFaults, failFields } from "../../platform/errors.ts";
import type { Queryable } from "../../platform/postgres/database.ts";
import { compileReader } from "../../platform/rest-json/reader.ts";
import { ruleFaults } from "../../platform/validation.ts";
import { findTextFaults, writeContents } from "./contents.ts";
import { fillText, mapTexts, namesIn } from "./placeholders.ts";
import { findRecipe } from "./store.ts";

/** The failure for an unknown recipe or a recipe of another account. */
export const noRecipe = (): Failure => fail("not-found", {}, { detail: "no recipe has this id" });

/** Maximum characters inserted by values: a short recipe may use a long value many times. */
const maxFilled = 1_048_576;

const read = compileReader(CreateRecipeRequestSchema);

export interface RecipeRequest {
  readonly accountId: string;
  readonly id: string;
  readonly values: Readonly<Record<string, string>>;
  /** Names of secrets. A parameter with such a name becomes a placeholder that the worker fills in. */
  readonly variables: readonly string[];
}

/** Returns the value of each parameter. Throws `validation-failed` for missing or unknown parameters. */
function readValues(
  { parameters }: CreateRecipeRequest,
  { values: given, variables }: Pick<RecipeRequest, "values" | "variables">,
): ReadonlyMap<string, string> {
  const givenFor = (name: string, usual: string | undefined) => (Object.hasOwn(given, name) ? given[name] : usual);
  const known = new Map(
    parameters.map(({ name, value }) => [name, variables.includes(name) ? `{{${name}}}` : givenFor(name, value)]),
  );
  const faults = Object.keys(given)
    .filter((name) => !known.has(name))
    .map((name) => ({ field: `recipe_parameters.${name}`, message: "is not a parameter of the recipe" }));
  const values = new Map<string, string>();
  for (const [name, value] of known) {
    if (value === undefined) faults.push({ field: `recipe_parameters.${name}`, message: "is required" });
    else values.set(name, value);
  }
  if (faults.length > 0) throw failFaults("validation-failed", faults);
  return values;
}

/**
 * Fills in the placeholders. Throws `validation-failed` if the result is not a valid recipe, if more than `maxFilled`
 * characters are inserted, or if a secret is used anywhere other than as text to type.
 */
function fill(
  request: CreateRecipeRequest,
  values: ReadonlyMap<string, string>,
  variables: readonly string[],
): CreateRecipeRequest {
  let left = maxFilled;
  const filled = mapTexts(writeContents(request), (text, path) => {
    for (const name of namesIn(text)) {
      left -= values.get(name)?.length ?? 0;
      if (variables.includes(name) && !path.endsWith(".do.action.text"))
        throw failFields("validation-failed", {
          [`variables.${name}`]: `can only be typed, but ${path} has a placeholder for it`,
        });
    }
    if (left < 0)
      throw failFields("validation-failed", {
        recipe_parameters: `must insert at most ${maxFilled} characters in total`,
      });
    return fillText(text, values);
  });
  const faults: FieldFault[] = [];
  // The reader was compiled for this message type.
  const made = read({ name: request.name, ...Object(filled) }, faults) as CreateRecipeRequest;
  if (faults.length === 0) faults.push(...ruleFaults(CreateRecipeRequestSchema, made), ...findTextFaults(made, true));
  if (faults.length === 0) return made;
  const prefixed = faults.map(({ field, message }) => ({
    field: "recipe_parameters",
    message: `once filled in, ${field}: ${message}`,
  }));
  throw failFaults("validation-failed", prefixed);
}

/** Loads a recipe and fills in its placeholders. Throws `not-found` and `validation-failed`. */
export async function planRecipe(db: Queryable, requested: RecipeRequest): Promise<Recipe> {
  const { id, accountId, variables } = requested;
  const row = await findRecipe(db, id, accountId);
  if (!row) throw noRecipe();
  const request = fromBinary(CreateRecipeRequestSchema, row.contents);
  const { steps, startUrl } = fill(request, readValues(request, requested), variables);
  const { name, description, allowedDomains } = request;
  return create(RecipeSchema, {
    id,
    name,
    steps,
    allowedDomains,
    ...(description !== undefined && { description }),
    ...(startUrl !== undefined && { startUrl }),
  });
}
