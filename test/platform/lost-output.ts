// Process whose log has lost its reader. On a message, logs an entry and prints the number of uncaught errors.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { keepRunning } from "../../src/platform/last-resort.ts";
import { createLog } from "../../src/platform/log.ts";
import { createMetrics } from "../../src/platform/metrics.ts";

const log = createLog("error");
keepRunning(log);
await once(process.stdin, "data");
log.error({}, "nothing reads this");
// Without protection, each failed write would be logged and fail again within this time.
await sleep(200);
const metric = await createMetrics().getSingleMetric("pilothouse_uncaught_errors_total")?.get();
process.stdout.write(String(metric?.values[0]?.value), () => process.exit());
