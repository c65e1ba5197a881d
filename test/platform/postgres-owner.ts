// In place of a gateway: starts the server, commits a row and waits until it is killed.

import { createLog } from "../../src/platform/log.ts";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { createEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";

const [directory = ""] = process.argv.slice(2);
const log = createLog("silent");
const server = createEmbeddedPostgres(directory, log);
await server.start();
const db = openDatabase(server.target, log);
await db.named({ name: "make", text: "create table kept (word text)" }, []);
await db.named({ name: "keep", text: "insert into kept values ('durable')" }, []);
process.send?.("ready");
