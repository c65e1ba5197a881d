// npm run admin -- <command>: what an operator does that has no endpoint. Needs DATABASE_URL.
import { parseArgs } from "node:util";
import { ensureAccount } from "../src/accounts/store.ts";
import { createApiKeys } from "../src/api-keys/api-keys.ts";
import { allScopes } from "../src/api-keys/scopes.ts";
import { migrations } from "../src/features.ts";
import { tiers } from "../src/limits/tiers.ts";
import { createLocalBus } from "../src/platform/bus.ts";
import { systemClock } from "../src/platform/clock.ts";
import { openDatabase } from "../src/platform/database.ts";
import { createIds } from "../src/platform/ids.ts";
import { createLog } from "../src/platform/log.ts";
import { StartRefused } from "../src/platform/start-refused.ts";

const help = `Usage: npm run admin -- create-key --account <name or id> [options]

Makes an API key and prints it, this once, to standard output. DATABASE_URL says in which database; its tables are made
when they are not there yet.

  --account <name or id>  whose key; an account of this name is made when there is none
  --tier <tier>           of a new account: ${tiers.names.join(", ")} (default free); changes no account that exists
  --name <name>           what the key is called (default "admin")
  --scopes <list>         separated by commas (default: all); known are
                          ${allScopes.join(", ").replaceAll(/(.{60,80}), /g, "$1,\n                          ")}
  --help                  prints this
`;

/** Reads the command line; undefined when help was asked for. */
function readOrder() {
  const text = { type: "string" } as const;
  const options = { account: text, tier: text, name: text, scopes: text, help: { type: "boolean" } } as const;
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [command, ...rest] = positionals;
  if (values.help || command === undefined) return undefined;
  if (command !== "create-key" || rest.length > 0)
    throw new StartRefused(`there is no command ${positionals.join(" ")}`);
  const { account = "", tier, name = "admin", scopes } = values;
  if (account === "") throw new StartRefused("--account accepts the name or the id of an account, and is needed");
  if (tier !== undefined && !tiers.names.some((known) => known === tier))
    throw new StartRefused(`--tier accepts ${tiers.names.join(", ")}, not ${tier}`);
  const wanted = scopes?.split(",").map((scope) => scope.trim()) ?? allScopes;
  const unknown = wanted.find((scope) => !allScopes.includes(scope));
  if (unknown !== undefined) throw new StartRefused(`--scopes: there is no scope ${unknown}; see --help`);
  return { account, tier, name, scopes: wanted };
}

/** Makes the key in the database of DATABASE_URL. */
async function createKey({ account, tier, name, scopes }: NonNullable<ReturnType<typeof readOrder>>): Promise<string> {
  const url = process.env.DATABASE_URL;
  if (!url) throw new StartRefused("DATABASE_URL is needed: embedded mode makes its own key, in DATA_DIR/dev-api-key");
  const log = createLog("warn");
  const ids = createIds(systemClock);
  const db = openDatabase({ url }, log, 1);
  try {
    await db.migrate(migrations);
    const keys = createApiKeys({ db, bus: createLocalBus(), ids, clock: systemClock });
    return await db.transaction(async (tx) => {
      const found = await ensureAccount(tx, { id: ids.next("acc"), name: account, tier: tier ?? "free" });
      if (found === "ambiguous") throw new StartRefused(`several accounts are called ${account}: give the id of one`);
      if (tier !== undefined && found.tier !== tier)
        throw new StartRefused(`the account ${account} is there already, with the tier ${found.tier}`);
      return (await keys.create(tx, { accountId: found.id, name, scopes })).token;
    });
  } finally {
    await db.close();
  }
}

try {
  const order = readOrder();
  process.stdout.write(order ? `${await createKey(order)}\n` : help);
} catch (error) {
  const isForeseen = error instanceof StartRefused || (error instanceof TypeError && "code" in error);
  process.stderr.write(
    `pilothouse: ${isForeseen ? error.message : error instanceof Error ? error.stack : String(error)}\n`,
  );
  process.exitCode = 1;
}
