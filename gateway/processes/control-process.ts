import { logVerbosity, setLogVerbosity } from "@grpc/grpc-js";
import type { Registry } from "prom-client";
import { type ControlPlaneOptions, createControlPlane } from "../../src/app/control-plane.ts";
import type { Config } from "../../src/platform/config.ts";
import { createInternalServer } from "../../src/platform/internal-server.ts";
import { keepRunning } from "../../src/platform/last-resort.ts";
import { createLifetime } from "../../src/platform/lifetime.ts";
import { createLog, type Log } from "../../src/platform/log.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { linkToSupervisor } from "../../src/platform/process-channel.ts";
import { createServiceTraces } from "../../src/platform/traces/service-traces.ts";
import { runProcess } from "./run-process.ts";

/** Runs the control plane in this process. */
export async function runControl(config: Config): Promise<void> {
  setLogVerbosity(logVerbosity.NONE);
  const link = linkToSupervisor();
  await link?.begun;
  const log = createLog(config.logLevel);
  keepRunning(log);
  const metrics = createMetrics();
  metrics.setDefaultLabels({ role: "control" });
  const shared = link ? { bus: link.bus } : await createRedisSharing(config, log, metrics);
  const traces = createServiceTraces(config.traces, "control", log);
  const control = createControlPlane({ config, log, metrics, ...shared, forwardSpans: traces.forward });
  const { isReady, fleet, demandOf } = control;
  const { host, internalPort: port } = config;
  const internal = link ? {} : createInternalServer({ host, port, isReady, metrics, demandOf });
  const isRunning = await runProcess(
    { role: "control", log },
    createLifetime([traces, control, internal], log),
    fleet.workerUp,
  );
  if (isRunning) link?.reportReady({}, { isReady, metrics });
}

/** Connects to Redis. Returns the bus between processes on several machines, and the lifetime of the connection. */
async function createRedisSharing(
  { redisUrl = "" }: Config,
  log: Log,
  registry: Registry,
): Promise<Pick<ControlPlaneOptions, "bus" | "busLifetime">> {
  // Loaded on demand, so that a process without Redis restarts within its lease.
  const { createRedis } = await import("../../src/platform/redis/redis.ts");
  const { createRedisBus } = await import("../../src/platform/redis/redis-bus.ts");
  const redis = createRedis({ url: redisUrl, log, registry });
  return { bus: createRedisBus(redis), busLifetime: redis };
}
