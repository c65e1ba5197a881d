import { Counter } from "prom-client";
import type { Config } from "../../src/platform/config.ts";
import { randomText } from "../../src/platform/ids.ts";
import { createInternalServer } from "../../src/platform/internal-server.ts";
import { keepRunning } from "../../src/platform/last-resort.ts";
import { createLifetime } from "../../src/platform/lifetime.ts";
import { createLog } from "../../src/platform/log.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { createDatabaseServer } from "../../src/platform/postgres/database-server.ts";
import type { BusEnvelope } from "../../src/platform/process-channel.ts";
import { joinMetrics } from "./join-metrics.ts";
import { runProcess } from "./run-process.ts";
import { checkStart, createInstanceRecord } from "./start-checks.ts";
import { createSupervisedProcess, type SupervisedProcess } from "./supervised-process.ts";

/** Milliseconds without a response before a restart. Shorter times would kill slow processes on a busy machine. */
const timeouts = { control: 10_000, gateway: 60_000 };

/** Milliseconds from SIGTERM to SIGKILL. The control process stops the worker; a gateway finishes its requests. */
const graceMs = { control: 20_000, gateway: 45_000 };

/** Largest heap of a gateway in MiB. Client buffers are outside the heap, and have their own budget. */
const gatewayHeap = 1_024;

/**
 * Runs a service on one machine: PostgreSQL (unless DATABASE_URL is set), a control process and a gateway. Forwards bus
 * messages between the control process and the gateway, and serves health and metrics of all processes.
 */
export async function runSupervisor(config: Config): Promise<void> {
  await checkStart(config);
  const log = createLog(config.logLevel);
  keepRunning(log);
  const metrics = createMetrics();
  metrics.setDefaultLabels({ role: "supervisor" });
  const restarts = new Counter({
    name: "pilothouse_process_restarts_total",
    help: "Processes of the service that were restarted after they exited or stopped responding.",
    labelNames: ["process"],
    registers: [metrics],
  });
  const server = createDatabaseServer({ config, log, onFatal: () => process.kill(process.pid, "SIGTERM") });
  const serverUp = Promise.withResolvers<void>();
  const linkSecret = randomText(32);
  let demoPort = 0;
  let welcome = "";

  function make(name: "control" | "gateway", others: () => SupervisedProcess, nodeOptions: string[] = []) {
    let starts = 0;
    return createSupervisedProcess({
      name,
      nodeOptions,
      timeout: timeouts[name],
      grace: graceMs[name],
      log,
      async begin() {
        await serverUp.promise;
        return { kind: "begin", demoPort, linkSecret };
      },
      onReady(readiness) {
        demoPort = readiness.demoPort ?? demoPort;
        welcome = readiness.welcome ?? welcome;
        if (starts > 0) restarts.inc({ process: name });
        starts += 1;
      },
      onPost: (post: BusEnvelope) => others().post(post),
    });
  }

  const control: SupervisedProcess = make("control", () => gateway);
  const gateway: SupervisedProcess = make("gateway", () => control, [`--max-old-space-size=${gatewayHeap}`]);
  const processes = [control, gateway];
  const internal = createInternalServer({
    host: config.host,
    port: config.internalPort,
    async isReady() {
      const answers = await Promise.all(processes.map((each) => each.ask("ready")));
      return answers.every((answer) => answer === "ready");
    },
    metrics: {
      contentType: metrics.contentType,
      async metrics() {
        const texts = await Promise.all([metrics.metrics(), ...processes.map((each) => each.ask("metrics"))]);
        return joinMetrics(texts.map((text) => text ?? ""));
      },
    },
  });
  const children = {
    async start(signal: AbortSignal) {
      const cancel = (): void => void children.stop();
      signal.addEventListener("abort", cancel);
      try {
        await Promise.all(processes.map((each) => each.start()));
      } finally {
        signal.removeEventListener("abort", cancel);
      }
    },
    async stop() {
      await gateway.stop();
      await control.stop();
    },
  };
  const database = {
    async start(signal: AbortSignal) {
      await server.start?.(signal);
      serverUp.resolve();
    },
    stop: () => server.stop?.(),
  };
  // The processes load their programs while PostgreSQL starts.
  const loading = {
    start: (signal: AbortSignal) => void children.start(signal).catch(() => undefined),
    stop: children.stop,
  };
  const isRunning = await runProcess(
    { role: "supervisor", log },
    createLifetime([createInstanceRecord(config), loading, database, children, internal], log),
  );
  if (isRunning) process.stdout.write(welcome);
}
