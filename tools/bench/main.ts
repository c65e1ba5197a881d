// npm run bench: prints speed and size of the service, compared with baselines. Arguments select benches by name;
// --quick takes fewer samples.
import { loadavg } from "node:os";
import { agent } from "./agent.ts";
import { auditExport } from "./audit-export.ts";
import { authTiming } from "./auth-timing.ts";
import type { Bench } from "./bench.ts";
import { capacity } from "./capacity.ts";
import { captureMemory } from "./capture-memory.ts";
import { cdpProxyNeighbours } from "./cdp-proxy-neighbours.ts";
import { endToEnd } from "./end-to-end.ts";
import { fetchCpu } from "./fetch.ts";
import { firstLines } from "./first-lines.ts";
import { flood } from "./flood.ts";
import { ForeignLoad } from "./foreign-load.ts";
import { input } from "./input.ts";
import { live } from "./live.ts";
import { memory } from "./memory.ts";
import { observationTokens } from "./observation-tokens.ts";
import { observe } from "./observe.ts";
import { operations } from "./operations.ts";
import { outsideCpu } from "./outside-cpu.ts";
import { path } from "./path.ts";
import { profileCreate } from "./profile-create.ts";
import { profileSurvival } from "./profile-survival.ts";
import { remoteClients } from "./remote-clients.ts";
import { sessionLogs } from "./session-logs.ts";
import { statusFollowers } from "./status-followers.ts";
import { printTable } from "./table.ts";
import { warmStart } from "./warm-start.ts";
import { webhooks } from "./webhooks.ts";
import { webhooksHanging } from "./webhooks-hanging.ts";
import { webhooksOldLog } from "./webhooks-old-log.ts";

const benches: readonly Bench[] = [
  path,
  operations,
  observe,
  agent,
  observationTokens,
  warmStart,
  endToEnd,
  firstLines,
  outsideCpu,
  sessionLogs,
  fetchCpu,
  memory,
  capacity,
  captureMemory,
  auditExport,
  profileCreate,
  profileSurvival,
  flood,
  remoteClients,
  cdpProxyNeighbours,
  authTiming,
  webhooks,
  webhooksHanging,
  webhooksOldLog,
  statusFollowers,
  input,
  live,
];

async function main(args: readonly string[]): Promise<void> {
  const isQuick = args.includes("--quick");
  const wanted = args.filter((arg) => arg !== "--quick");
  const unknown = wanted.find((name) => !benches.some((bench) => bench.name === name));
  if (unknown !== undefined) {
    const names = benches.map(({ name }) => name).join(", ");
    throw new Error(`there is no bench ${unknown}; there are ${names}, and the option --quick`);
  }
  for (const bench of benches) {
    if (wanted.length === 0 || wanted.includes(bench.name)) await measure(bench, isQuick);
  }
}

async function measure(bench: Bench, isQuick: boolean): Promise<void> {
  process.stdout.write(`\n${bench.name}: ${bench.title}\n`);
  const beganAt = performance.now();
  const foreign = new ForeignLoad();
  const rows = await bench.run({ of: (full, quick) => (isQuick ? quick : full) }).finally(() => {
    const seconds = ((performance.now() - beganAt) / 1_000).toFixed(0);
    const load = loadavg()[0]?.toFixed(1);
    process.stdout.write(`  (${seconds} s; others used about ${foreign.stop().toFixed(1)} cores; load ${load})\n`);
  });
  printTable(rows);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.stack : String(error)}\n`);
  // Processes of a failed bench would keep this process alive. Browsers end with their pipes.
  process.exit(1);
});
