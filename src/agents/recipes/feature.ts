import { RecipeService } from "../../gen/pilothouse/v1/recipe_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { createRecipeService, type RecipeServiceParts } from "./service.ts";

export const recipes = defineService({
  service: RecipeService,
  create: (parts: RecipeServiceParts) => ({ methods: createRecipeService(parts) }),
});
