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
import { findWordFaults, writeContents } from "./contents.ts";
import { fillText, mapTexts, namesIn } from "./placeholders.ts";
import { findRecipe } from "./store.ts";

/** The failure of what asks for a recipe that is not there, or belongs to another account. */
export const noRecipe = (): Failure => fail("not-found", {}, { detail: "no recipe has this id" });

/** Characters that values may put into the places of a recipe: a short recipe may have many for a long one. */
const mostFilled = 1_048_576;

const read = compileReader(CreateRecipeRequestSchema);

/** Which recipe is to be run, and what it is told. */
export interface RecipeWish {
  readonly accountId: string;
  readonly id: string;
  readonly values: Readonly<Record<string, string>>;
  /** Names of secrets: parameters that are called so are typed by the worker, which alone knows what they are. */
  readonly variables: readonly string[];
}

/** The value of each parameter. Throws `validation-failed` for one that is missing, and for what is none. */
function readValues(
  { parameters }: CreateRecipeRequest,
  { values: given, variables }: Pick<RecipeWish, "values" | "variables">,
): ReadonlyMap<string, string> {
  const givenFor = (name: string, usual: string | undefined) => (Object.hasOwn(given, name) ? given[name] : usual);
  const known = new Map(
    parameters.map(({ name, value }) => [name, variables.includes(name) ? `{{${name}}}` : givenFor(name, value)]),
  );
  const faults = Object.keys(given)
    .filter((name) => !known.has(name))
    .map((name) => ({ field: `recipe_parameters.${name}`, message: "is no parameter of the recipe" }));
  const values = new Map<string, string>();
  for (const [name, value] of known) {
    if (value === undefined) faults.push({ field: `recipe_parameters.${name}`, message: "is required" });
    else values.set(name, value);
  }
  if (faults.length > 0) throw failFaults("validation-failed", faults);
  return values;
}

/** Fills the places. Throws `validation-failed` where that makes what no recipe may have. */
function fill(
  request: CreateRecipeRequest,
  values: ReadonlyMap<string, string>,
  variables: readonly string[],
): CreateRecipeRequest {
  let left = mostFilled;
  const filled = mapTexts(writeContents(request), (text, path) => {
    for (const name of namesIn(text)) {
      left -= values.get(name)?.length ?? 0;
      if (variables.includes(name) && !path.endsWith(".do.action.text"))
        throw failFields("validation-failed", {
          [`variables.${name}`]: `is only typed, and ${path} has a place for it`,
        });
    }
    if (left < 0)
      throw failFields("validation-failed", { recipe_parameters: `put more than ${mostFilled} characters into it` });
    return fillText(text, values);
  });
  const faults: FieldFault[] = [];
  // What the reader of a message makes is that message.
  const made = read({ name: request.name, ...Object(filled) }, faults) as CreateRecipeRequest;
  if (faults.length === 0) faults.push(...ruleFaults(CreateRecipeRequestSchema, made), ...findWordFaults(made, true));
  if (faults.length === 0) return made;
  const told = faults.map(({ field, message }) => ({
    field: "recipe_parameters",
    message: `once filled, ${field}: ${message}`,
  }));
  throw failFaults("validation-failed", told);
}

/** Reads a recipe for a run: its places are filled. Throws `not-found` and `validation-failed`. */
export async function planRecipe(db: Queryable, wish: RecipeWish): Promise<Recipe> {
  const { id, accountId, variables } = wish;
  const row = await findRecipe(db, id, accountId);
  if (!row) throw noRecipe();
  const request = fromBinary(CreateRecipeRequestSchema, row.contents);
  const { steps, startUrl } = fill(request, readValues(request, wish), variables);
  const { name, description, allowedDomains } = request;
  return create(RecipeSchema, {
    ...{ id, name, steps, allowedDomains },
    ...(description !== undefined && { description }),
    ...(startUrl !== undefined && { startUrl }),
  });
}
