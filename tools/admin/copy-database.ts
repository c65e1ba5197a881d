import { join } from "node:path";
import { migrations } from "../../src/app/migrations.ts";
import { createLog } from "../../src/platform/log.ts";
import { createAdvisoryLock } from "../../src/platform/postgres/advisory-lock.ts";
import { copyDatabase, isMigrated } from "../../src/platform/postgres/copy-database.ts";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { createEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import type { AdminCommand } from "./command.ts";
import { embeddedDirectory } from "./operator.ts";

export const copyEmbedded: AdminCommand = {
  help: `copy-database --to <postgres://...>

  copies the data of the embedded PostgreSQL of DATA_DIR into another one, of release 15 or later. Stop
  the service before

  --to <postgres://...>   an empty database`,
  options: ["to"],
  async run({ to: url }, env) {
    if (!url) throw new StartRefused("--to is required and accepts the address of an empty database, postgres://...");
    const log = createLog("warn");
    const dataDir = embeddedDirectory(env);
    const embedded = createEmbeddedPostgres(dataDir, log);
    const lock = createAdvisoryLock({ target: embedded.target, log, number: 1, onLost: () => undefined });
    await using stack = new AsyncDisposableStack();
    const to = openDatabase({ url }, log, 1);
    stack.defer(() => to.close());
    if (await isMigrated(to))
      throw new StartRefused("--to accepts an empty database, but this one already has tables of Pilothouse");
    await embedded.start();
    stack.defer(() => embedded.leave());
    await lock.take();
    // The lock keeps other processes away from the database.
    stack.defer(() => embedded.stop());
    stack.defer(() => lock.release());
    const from = openDatabase(embedded.target, log, 1);
    stack.defer(() => from.close());
    await from.migrate(migrations);
    await to.migrate(migrations);
    const count = await copyDatabase(from, to);
    const keys = join(dataDir, "secrets-key");
    return `Copied ${count} rows. Start gateways with DATABASE_URL, and with the SECRETS_KEYS of ${keys}.`;
  },
};
