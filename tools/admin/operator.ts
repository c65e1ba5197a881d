import { existsSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { findAccounts, type NamedAccount } from "../../src/accounts/store.ts";
import { migrations } from "../../src/app/migrations.ts";
import { createAuditLog } from "../../src/audit/audit-log.ts";
import type { AuditLog } from "../../src/kernel/call.ts";
import { type Bus, createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { dataDirectory } from "../../src/platform/data-directory.ts";
import type { Environment } from "../../src/platform/environment.ts";
import { createIds, type Ids } from "../../src/platform/ids.ts";
import { createLog } from "../../src/platform/log.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { type Database, openDatabase, type Queryable } from "../../src/platform/postgres/database.ts";
import type { DatabaseTarget } from "../../src/platform/postgres/database-target.ts";
import { createEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { createRedis } from "../../src/platform/redis/redis.ts";
import { createRedisBus } from "../../src/platform/redis/redis-bus.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";

/** Dependencies of the commands. */
export interface Operator {
  readonly db: Database;
  readonly bus: Bus;
  readonly ids: Ids;
  readonly audit: AuditLog;
}

/** Returns the data directory of embedded mode. Throws if the directory has no database. */
export function embeddedDirectory(env: Environment): string {
  const dataDir = dataDirectory({ env, uid: userInfo().uid, home: homedir() });
  if (existsSync(join(dataDir, "postgres", "data"))) return dataDir;
  throw new StartRefused(`DATA_DIR: ${dataDir} has no database in it`);
}

/** Returns the database of DATABASE_URL, else of the service that runs on DATA_DIR. */
function findDatabase(env: Environment): DatabaseTarget {
  const url = env.DATABASE_URL;
  return url ? { url } : createEmbeddedPostgres(embeddedDirectory(env), createLog("warn")).target;
}

/** Opens the bus of REDIS_URL, which notifies gateways at once. Without a bus, gateways poll every 5 s. */
async function openBus(url: string | undefined, stack: AsyncDisposableStack): Promise<Bus> {
  if (!url) return createLocalBus();
  const redis = createRedis({ url, log: createLog("error"), registry: createMetrics(), timeoutMs: 2_000 });
  const bus = createRedisBus(redis);
  await redis.start();
  stack.defer(async () => {
    // The reply to a ping means that earlier messages were sent.
    await redis.run("bus", (client) => client.ping());
    redis.stop();
  });
  return bus;
}

/** Runs a function with the database of an environment. Throws StartRefused if the embedded PostgreSQL is stopped. */
export async function withDatabase<T>(env: Environment, run: (db: Database) => Promise<T>): Promise<T> {
  await using stack = new AsyncDisposableStack();
  const db = openDatabase(findDatabase(env), createLog("warn"), 2);
  stack.defer(() => db.close());
  return await run(db).catch((error: unknown) => {
    if (env.DATABASE_URL || !isAbsent(error)) throw error;
    throw new StartRefused("no service runs on DATA_DIR; start it with `npm start`, then run this command again");
  });
}

/** Runs a command against the service of an environment. Migrates its database unless MIGRATE is `off`. */
export async function asOperator<T>(env: Environment, run: (operator: Operator) => Promise<T>): Promise<T> {
  return withDatabase(env, async (db) => {
    if (env.MIGRATE !== "off") await db.migrate(migrations);
    const ids = createIds(systemClock);
    await using stack = new AsyncDisposableStack();
    const bus = await openBus(env.REDIS_URL, stack);
    return await run({ db, bus, ids, audit: createAuditLog({ db, ids, bus }) });
  });
}

/** Returns whether the embedded PostgreSQL is not running. */
function isAbsent(error: unknown): boolean {
  const codes = ["ENOENT", "ECONNREFUSED"];
  for (let at = error; at instanceof Error; at = at.cause)
    if ("code" in at && codes.includes(String(at.code))) return true;
  return false;
}

/** Returns the account that --account names, by id or name. */
export async function accountOf(db: Queryable, account: string | undefined): Promise<NamedAccount> {
  if (!account) throw new StartRefused("--account is required and accepts the name or the id of an account");
  const [found, ...others] = await findAccounts(db, account);
  if (!found) throw new StartRefused(`there is no account ${account}`);
  if (others.length > 0) throw new StartRefused(`several accounts have the name ${account}: use an id`);
  return found;
}
