import { ensureAccount } from "../../src/accounts/store.ts";
import { createKey as makeKey } from "../../src/identity/api-keys/api-keys.ts";
import { allScopes } from "../../src/identity/api-keys/scopes.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import { type AdminCommand, type Given, nameList } from "./command.ts";
import { asOperator } from "./operator.ts";
import { readTier } from "./set-tier.ts";

function readOrder({ account, tier, name = "admin", scopes }: Given) {
  if (!account) throw new StartRefused("--account is required and accepts the name or the id of an account");
  const wanted = scopes?.split(",").map((scope) => scope.trim()) ?? allScopes;
  const unknown = wanted.find((scope) => !allScopes.includes(scope));
  if (unknown !== undefined) throw new StartRefused(`--scopes: there is no scope ${unknown}; see --help`);
  return { account, tier: tier === undefined ? undefined : readTier(tier), name, scopes: wanted };
}

export const createKey: AdminCommand = {
  help: `create-key --account <name or id> [options]

  creates an API key and prints it, only once, to standard output

  --account <name or id>  owner of the key; an account with this name is created if missing
  --tier <tier>           of a new account (default free); does not change an existing account. Tiers:
                          ${nameList(tiers.names)}
  --name <name>           name of the key (default "admin")
  --scopes <list>         separated by commas (default: all). Scopes:
                          ${nameList(allScopes)}`,
  options: ["account", "tier", "name", "scopes"],
  run(given, env) {
    const { account, tier, name, scopes } = readOrder(given);
    return asOperator(env, ({ db, ids, audit }) =>
      db.transaction(async (tx) => {
        const found = await ensureAccount(tx, { id: ids.next("acc"), name: account, tier: tier ?? "free" });
        if (found === "ambiguous") throw new StartRefused(`several accounts have the name ${account}: use an id`);
        if (tier !== undefined && found.tier !== tier)
          throw new StartRefused(`the account ${account} already exists, with the tier ${found.tier}`);
        const key = await makeKey(tx, ids, { accountId: found.id, name, scopes });
        const record = { accountId: found.id, actor: { kind: "operator" }, action: "api_key.create" } as const;
        audit.record(tx, { ...record, subject: key.id, data: { name, scopes } });
        return key.token;
      }),
    );
  },
};
