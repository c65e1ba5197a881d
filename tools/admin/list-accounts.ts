import { listAccounts } from "../../src/accounts/store.ts";
import { createLimits } from "../../src/limits/limits.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { AdminCommand } from "./command.ts";
import { asOperator } from "./operator.ts";

export const listAll: AdminCommand = {
  help: `list-accounts

  prints all accounts, a line of JSON each, the oldest first`,
  options: [],
  run: (_given, env) =>
    asOperator(env, async ({ db }) => {
      const limits = createLimits(systemClock);
      const lines = (await listAccounts(db)).map((account) => {
        const { id, name, tier, created_at, disabled_at } = account;
        return JSON.stringify({ id, name, tier, created_at, disabled_at, overrides: limits.overrides(account) });
      });
      return lines.join("\n");
    }),
};
