// Runs the jobs of "doomed" queues until it is killed: node doomed-runner.ts <database URL> <record of done jobs>
import { appendFileSync } from "node:fs";
import { createLog } from "../../src/platform/log.ts";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { doomedWork } from "./doomed-jobs.ts";
import { startRunners } from "./runners.ts";

const [url = "", file = ""] = process.argv.slice(2);

const kind = doomedWork(async ({ data }) => appendFileSync(file, `${process.pid} ${data.number}\n`));
await startRunners(openDatabase({ url }, createLog("warn")), [kind], { count: 1 });
process.stdout.write("ready\n");
