import { create, toBinary } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { lockAccount } from "../../accounts/store.ts";
import {
  type CreateRecipeRequest,
  CreateRecipeRequestSchema,
  type ListRecipesRequest,
  ListRecipesResponseSchema,
  type RecipeService,
} from "../../gen/pilothouse/v1/recipe_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { counted } from "../../platform/counted.ts";
import { fail, failFaults, failFields } from "../../platform/errors.ts";
import { idPattern } from "../../platform/ids.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { findFaults } from "./contents.ts";
import { noRecipe } from "./plan.ts";
import { toRecipeMessage, toRecipeSummary } from "./recipe-message.ts";
import { countRecipes, deleteRecipe, findRecipe, insertRecipe, listRecipes } from "./store.ts";

export type RecipeServiceParts = Pick<PlatformParts, "db" | "clock">;

const defaultPage = 20;

/** Maximum number of recipes of an account, and maximum bytes of a recipe. */
const max = { recipes: 1_000, bytes: 262_144 };

const recipeId = idPattern("rcp");

export function createRecipeService({ db, clock }: RecipeServiceParts): ServiceImplementation<typeof RecipeService> {
  function createRecipe(call: Call, request: CreateRecipeRequest) {
    const { accountId } = call.principal;
    const { name, description = null, steps } = request;
    const faults = findFaults(request);
    if (faults.length > 0) throw failFaults("validation-failed", faults);
    const contents = Buffer.from(toBinary(CreateRecipeRequestSchema, request));
    if (contents.length > max.bytes)
      throw failFields("validation-failed", { steps: `are too long: the recipe must have at most ${max.bytes} bytes` });
    const id = call.ids.next("rcp");
    return call.commit(async (tx) => {
      await lockAccount(tx, accountId);
      const count = await countRecipes(tx, accountId);
      if (count >= max.recipes) {
        const detail = `the account has ${counted(count, "recipe")}, the maximum: delete one first`;
        throw fail("tier-limit", { current_recipes: count, limit: max.recipes }, { detail });
      }
      const row = await insertRecipe(tx, {
        id,
        account_id: accountId,
        name,
        description,
        contents,
        step_count: steps.length,
        created_at: new Date(clock.now()),
      });
      call.audit(tx, { subject: id, data: { name } });
      return toRecipeMessage(row);
    });
  }

  async function list({ principal }: Call, { limit = defaultPage, cursor }: ListRecipesRequest) {
    const query = { accountId: principal.accountId, before: readCursor(cursor, recipeId), limit: limit + 1 };
    const { rows, position } = cutPage(await listRecipes(db, query), limit);
    return create(ListRecipesResponseSchema, { data: rows.map(toRecipeSummary), ...position });
  }

  return {
    create: createRecipe,
    list,
    async get({ principal }, { id }) {
      const row = await findRecipe(db, id, principal.accountId);
      if (!row) throw noRecipe();
      return toRecipeMessage(row);
    },
    async delete(call, { id }) {
      await db.transaction(async (tx) => {
        const gone = await deleteRecipe(tx, id, call.principal.accountId);
        if (!gone) throw noRecipe();
        call.audit(tx, { subject: id, data: { name: gone.name } });
      });
      return create(EmptySchema);
    },
  };
}
