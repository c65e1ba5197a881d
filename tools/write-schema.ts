// Writes docs/schema.sql from the catalog of a database that all migrations were applied to.
import { chmod, mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrations } from "../src/app/migrations.ts";
import { createLog } from "../src/platform/log.ts";
import { openDatabase } from "../src/platform/postgres/database.ts";
import { createEmbeddedPostgres } from "../src/platform/postgres/embedded-postgres.ts";
import { describeSchema } from "./describe-schema.ts";

await using stack = new AsyncDisposableStack();
const log = createLog("warn");
const directory = stack.use(await mkdtempDisposable(join(tmpdir(), "pilothouse-schema-"))).path;
// The user of the server needs access.
await chmod(directory, 0o711);
const postgres = createEmbeddedPostgres(directory, log);
await postgres.start();
stack.defer(() => postgres.stop());
const db = openDatabase(postgres.target, log, 1);
stack.defer(() => db.close());
await db.migrate(migrations);
await writeFile("docs/schema.sql", await describeSchema(db));
