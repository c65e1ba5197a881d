// A process whose log has lost its reader. When told so, it logs, and prints how many uncaught errors followed.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { keepRunning } from "../../src/platform/last-resort.ts";
import { createLog } from "../../src/platform/log.ts";
import { createMetrics } from "../../src/platform/metrics.ts";

const log = createLog("error");
keepRunning(log);
await once(process.stdin, "data");
log.error({}, "nothing reads this");
// Time in which a failed write that is logged would fail many times more.
await sleep(200);
const metric = await createMetrics().getSingleMetric("pilothouse_uncaught_errors_total")?.get();
process.stdout.write(String(metric?.values[0]?.value), () => process.exit());
