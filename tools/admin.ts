// npm run admin -- <command>: what an operator does that has no endpoint.
import { existsSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ensureAccount } from "../src/accounts/store.ts";
import { createApiKeys } from "../src/api-keys/api-keys.ts";
import { allScopes } from "../src/api-keys/scopes.ts";
import { migrations } from "../src/features.ts";
import { tiers } from "../src/limits/tiers.ts";
import { createLocalBus } from "../src/platform/bus.ts";
import { systemClock } from "../src/platform/clock.ts";
import { dataDirectory } from "../src/platform/data-directory.ts";
import { createIds } from "../src/platform/ids.ts";
import { createLog } from "../src/platform/log.ts";
import { copyDatabase, isMigrated } from "../src/platform/postgres/copy-database.ts";
import { openDatabase } from "../src/platform/postgres/database.ts";
import { createEmbeddedPostgres } from "../src/platform/postgres/embedded-postgres.ts";
import { createGatewayLock } from "../src/platform/postgres/gateway-lock.ts";
import { StartRefused } from "../src/platform/start-refused.ts";

const help = `Usage: npm run admin -- create-key --account <name or id> [options]
       npm run admin -- copy-database --to <postgres://...>

create-key makes an API key and prints it, this once, to standard output. DATABASE_URL says in which database; its tables
are made when they are not there yet.

  --account <name or id>  whose key; an account of this name is made when there is none
  --tier <tier>           of a new account: ${tiers.names.join(", ")} (default free); changes no account that exists
  --name <name>           what the key is called (default "admin")
  --scopes <list>         separated by commas (default: all); known are
                          ${allScopes.join(", ").replaceAll(/(.{60,80}), /g, "$1,\n                          ")}

copy-database copies all that the embedded PostgreSQL of DATA_DIR holds into another one, of release 15 or later. Stop
npm start before.

  --to <postgres://...>   an empty database

  --help                  prints this
`;

const text = { type: "string" } as const;
const options = { account: text, tier: text, name: text, scopes: text, to: text, help: { type: "boolean" } } as const;
type Options = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

/** Checks what create-key was given. */
function readKeyOrder({ account = "", tier, name = "admin", scopes }: Options) {
  if (account === "") throw new StartRefused("--account accepts the name or the id of an account, and is needed");
  if (tier !== undefined && !tiers.names.some((known) => known === tier))
    throw new StartRefused(`--tier accepts ${tiers.names.join(", ")}, not ${tier}`);
  const wanted = scopes?.split(",").map((scope) => scope.trim()) ?? allScopes;
  const unknown = wanted.find((scope) => !allScopes.includes(scope));
  if (unknown !== undefined) throw new StartRefused(`--scopes: there is no scope ${unknown}; see --help`);
  return { account, tier, name, scopes: wanted };
}

/** Makes a key in the database of DATABASE_URL. */
async function createKey(given: Options): Promise<string> {
  const { account, tier, name, scopes } = readKeyOrder(given);
  const url = process.env.DATABASE_URL;
  if (!url) throw new StartRefused("DATABASE_URL is needed: embedded mode makes its own key, in DATA_DIR/dev-api-key");
  const log = createLog("warn");
  const ids = createIds(systemClock);
  const db = openDatabase({ url }, log, 1);
  try {
    await db.migrate(migrations);
    const keys = createApiKeys({ db, bus: createLocalBus(), ids });
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

/** Copies the embedded database to where it is to be from now on. */
async function copyEmbedded({ to: url }: Options): Promise<string> {
  if (!url) throw new StartRefused("--to accepts the address of an empty database, postgres://..., and is needed");
  const log = createLog("warn");
  const dataDir = dataDirectory({ env: process.env, uid: userInfo().uid, home: homedir() });
  if (!existsSync(join(dataDir, "postgres", "data")))
    throw new StartRefused(`DATA_DIR: ${dataDir} has no database in it`);
  const embedded = createEmbeddedPostgres(dataDir, log);
  const lock = createGatewayLock(embedded.target, log, () => undefined);
  await using stack = new AsyncDisposableStack();
  const to = openDatabase({ url }, log, 1);
  stack.defer(() => to.close());
  if (await isMigrated(to))
    throw new StartRefused("--to accepts an empty database, and this one has our tables already");
  await embedded.start();
  stack.defer(() => embedded.leave());
  await lock.take();
  // Nobody else's from here on.
  stack.defer(() => embedded.stop());
  stack.defer(() => lock.release());
  const from = openDatabase(embedded.target, log, 1);
  stack.defer(() => from.close());
  await from.migrate(migrations);
  await to.migrate(migrations);
  const count = await copyDatabase(from, to);
  const keys = join(dataDir, "secrets-key");
  return `Copied ${count} rows. Start gateways with DATABASE_URL, and with SECRETS_KEYS as it stands in ${keys}.`;
}

/** Does what the command line says, and gives what is to be printed. */
async function run(): Promise<string> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const command = positionals.join(" ");
  if (values.help || command === "") return help.trimEnd();
  if (command === "create-key") return createKey(values);
  if (command === "copy-database") return copyEmbedded(values);
  throw new StartRefused(`there is no command ${command}`);
}

try {
  process.stdout.write(`${await run()}\n`);
} catch (error) {
  const isForeseen = error instanceof StartRefused || (error instanceof TypeError && "code" in error);
  process.stderr.write(
    `pilothouse: ${isForeseen ? error.message : error instanceof Error ? error.stack : String(error)}\n`,
  );
  process.exitCode = 1;
}
