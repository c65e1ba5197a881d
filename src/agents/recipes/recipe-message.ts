import { create, fromBinary } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CreateRecipeRequestSchema,
  type Recipe,
  RecipeSchema,
  type RecipeSummary,
  RecipeSummarySchema,
} from "../../gen/pilothouse/v1/recipe_pb.ts";
import type { ListedRecipe, RecipeRow } from "./store.ts";

export function toRecipeMessage({ id, contents, created_at: createdAt }: RecipeRow): Recipe {
  const { $typeName: _typeName, ...written } = fromBinary(CreateRecipeRequestSchema, contents);
  return create(RecipeSchema, { ...written, id, createdAt: timestampFromDate(createdAt) });
}

export function toRecipeSummary(row: ListedRecipe): RecipeSummary {
  return create(RecipeSummarySchema, {
    id: row.id,
    name: row.name,
    stepCount: row.step_count,
    createdAt: timestampFromDate(row.created_at),
    ...(row.description !== null && { description: row.description }),
  });
}
