import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { SessionEndedReason } from "../src/gen/pilothouse/v1/session_pb.ts";
import type { IsolationConfig } from "../src/platform/isolation.ts";
import { createMetrics } from "../src/platform/metrics.ts";
import type { ReportedEvent } from "./base/reports.ts";
import { pipeTotals } from "./cdp/pipe-bounds.ts";
import { cdpProxyTotals } from "./cdp-proxy/cdp-proxy-totals.ts";
import type { FetchBrowsers } from "./fetch/fetch-browsers.ts";
import type { SlotPool } from "./isolation/slot-pool.ts";
import type { BrowserPool } from "./pool/browser-pool.ts";
import type { PressureWatch } from "./pressure/pressure-watch.ts";
import type { ProfileStore } from "./profiles/profile-store.ts";
import { endedReasonName } from "./session/ended-reason.ts";
import type { SessionTable } from "./session/session-table.ts";

export interface WorkerMetrics {
  readonly registry: Registry;
  /** Seconds of each command, including its time in the queue, by `method` and `outcome` (`ok` or an error slug). */
  readonly commands: Histogram<"method" | "outcome">;
  /** Counts an event: an end of a session by `reason`, or a bot check by `kind`. Other events are not counted. */
  count(event: ReportedEvent): void;
  /** Seconds until a session had a browser, by `how`: `adopted` (a warm one) or `launched`. */
  readonly browserReady: Histogram<"how">;
  /** Sessions that exceeded a resource limit, by `bound`. */
  readonly sessionsOverBound: Counter<"bound">;
  /** Logs of ended sessions, by `outcome`: `stored` or `lost`. */
  readonly logs: Counter<"outcome">;
  /** Adds gauges for the values of a pressure watch. */
  registerPressure(watch: PressureWatch): void;
}

/** Parts that are read when metrics are collected. */
interface Measured {
  sessions(): SessionTable;
  browsers(): BrowserPool;
  fetches?(): FetchBrowsers;
  readonly slots: SlotPool;
  readonly profiles?: ProfileStore;
  readonly isolation: IsolationConfig;
}

export function createWorkerMetrics({
  sessions,
  browsers,
  fetches,
  slots,
  profiles,
  isolation,
}: Measured): WorkerMetrics {
  const registry = createMetrics();
  const registers = [registry];
  gauge(
    registry,
    "pilothouse_worker_sessions",
    "Sessions that are launching or live.",
    () => sessions().running.length,
  );
  gauge(registry, "pilothouse_worker_slots", "Maximum number of sessions.", () => slots.size);
  gauge(registry, "pilothouse_worker_free_slots", "Sessions that could begin now.", () => sessions().free);
  gauge(registry, "pilothouse_worker_warm_browsers", "Browsers that wait for a session.", () => browsers().warm);
  if (fetches) gauge(registry, "pilothouse_worker_fetches", "Fetches that are running.", () => fetches().running);
  gauge(registry, "pilothouse_worker_queued_commands", "Commands that wait for their turn.", () => sessions().queued);
  gauge(registry, "pilothouse_worker_cdp_clients", "CDP clients that are connected.", () => cdpProxyTotals.clients);
  if (profiles) {
    gauge(registry, "pilothouse_worker_waiting_profiles", "Profiles that wait to be fetched by gateways.", async () => {
      return (await profiles.pending()).length;
    });
  }
  registerIsolation(registry, isolation);
  countEgress(registry, slots);
  countPipes(registry);
  countUnlistedCommands(registry);
  return {
    registry,
    commands: new Histogram({
      name: "pilothouse_worker_command_seconds",
      help: "Seconds from a command's arrival to its response.",
      labelNames: ["method", "outcome"],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    browserReady: new Histogram({
      name: "pilothouse_worker_browser_ready_seconds",
      help: "Seconds until a session had its browser with its first page open.",
      labelNames: ["how"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    count: createEventCounter(registers),
    sessionsOverBound: new Counter({
      name: "pilothouse_worker_sessions_over_bound_total",
      help: "Sessions that were ended because they took more memory, tasks or disk than a session may.",
      labelNames: ["bound"],
      registers,
    }),
    logs: new Counter({
      name: "pilothouse_worker_session_logs_total",
      help: "Logs of ended sessions that a control process stored, or that were lost.",
      labelNames: ["outcome"],
      registers,
    }),
    registerPressure: (watch) => registerPressure(registry, watch),
  };
}

function registerIsolation(registry: Registry, { isolation, browserSandbox }: IsolationConfig): void {
  new Gauge({
    name: "pilothouse_worker_isolation",
    help: "1, labelled with the isolation (`namespace` or `flags`) and whether browsers have their sandbox.",
    labelNames: ["isolation", "browser_sandbox"],
    registers: [registry],
  }).set({ isolation, browser_sandbox: browserSandbox }, 1);
}

function createEventCounter(registers: Registry[]): (event: ReportedEvent) => void {
  const ended = new Counter({
    name: "pilothouse_worker_sessions_ended_total",
    help: "Sessions that ended without a request of the client.",
    labelNames: ["reason"],
    registers,
  });
  const challenges = new Counter({
    name: "pilothouse_worker_challenges_total",
    help: "Bot checks that sessions encountered.",
    labelNames: ["kind"],
    registers,
  });
  return (event) => {
    if (event.case === "ended") {
      ended.inc({ reason: endedReasonName(event.value.reason ?? SessionEndedReason.UNSPECIFIED) });
    }
    if (event.case === "challengeSeen") challenges.inc({ kind: event.value.challenge ?? "generic" });
  };
}

function registerPressure(registry: Registry, watch: PressureWatch): void {
  new Gauge({
    name: "pilothouse_worker_pressure",
    help: "Share of memory in use, and of time that tasks stall on memory or wait for a core.",
    labelNames: ["kind"],
    registers: [registry],
    collect() {
      for (const [kind, value] of Object.entries(watch.pressure)) this.set({ kind }, value);
    },
  });
  new Gauge({
    name: "pilothouse_worker_closed",
    help: "1 for the most severe pressure that closes the worker to new sessions, otherwise 0.",
    labelNames: ["kind"],
    registers: [registry],
    collect() {
      for (const kind of Object.keys(watch.pressure)) this.set({ kind }, watch.closedBy === kind ? 1 : 0);
    },
  });
}

/** Counts egress bytes. The relays keep the counts; collection reads them, so that packets cost nothing extra. */
function countEgress(registry: Registry, slots: SlotPool): void {
  new Counter({
    name: "pilothouse_worker_egress_bytes_total",
    help: "Bytes that sessions exchanged with sites, or with their proxies.",
    labelNames: ["direction"],
    registers: [registry],
    collect() {
      const { sent, received } = slots.egress;
      this.reset();
      this.inc({ direction: "sent" }, sent);
      this.inc({ direction: "received" }, received);
    },
  });
  new Counter({
    name: "pilothouse_worker_egress_refusals_total",
    help: "Requests of pages to addresses that no page may reach.",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(slots.egress.refused);
    },
  });
}

/** Counts skipped messages and pauses of browser pipes. Pages control how much a browser writes. */
function countPipes(registry: Registry): void {
  const counts = [
    ["messages_skipped", "Messages of browsers that were too long to read.", () => pipeTotals.skipped],
    ["waits", "Pauses of browsers that had written too much.", () => pipeTotals.waits],
  ] as const;
  for (const [name, help, read] of counts) {
    new Counter({
      name: `pilothouse_worker_browser_${name}_total`,
      help,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }
}

function countUnlistedCommands(registry: Registry): void {
  new Counter({
    name: "pilothouse_worker_cdp_unjudged_total",
    help: "Commands of CDP clients that were refused because the policy does not list their methods.",
    labelNames: ["method"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [method, count] of cdpProxyTotals.unlisted) this.inc({ method }, count);
    },
  });
}

function gauge(registry: Registry, name: string, help: string, read: () => number | Promise<number>): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set(await read());
    },
  });
}
