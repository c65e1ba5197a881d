import { logVerbosity, setLogVerbosity } from "@grpc/grpc-js";
import type { Registry } from "prom-client";
import { type ControlPlaneOptions, createControlPlane } from "../../src/control-plane.ts";
import type { Config } from "../../src/platform/config.ts";
import { createInternalServer } from "../../src/platform/internal-server.ts";
import { keepRunning } from "../../src/platform/last-resort.ts";
import { createLifetime, type Part } from "../../src/platform/lifetime.ts";
import { createLog, type Log } from "../../src/platform/log.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { linkToSupervisor } from "../../src/platform/process-channel.ts";
import { runProcess } from "./run-process.ts";

/** Runs the process that keeps workers, ends sessions by time and migrates the database. */
export async function runControl(config: Config): Promise<void> {
  setLogVerbosity(logVerbosity.NONE);
  const link = linkToSupervisor();
  await link?.begun;
  const log = createLog(config.logLevel);
  keepRunning(log);
  const metrics = createMetrics();
  metrics.setDefaultLabels({ role: "control" });
  const shared = link ? { bus: link.bus } : await shareByRedis(config, log, metrics);
  const control = createControlPlane({ config, log, metrics, ...shared });
  let isServing = false;
  const isReady = async (): Promise<boolean> => isServing && (await control.isReady());
  const internal = link ? {} : createInternalServer({ host: config.host, port: config.internalPort, isReady, metrics });
  const serving: Part = {
    start: () => {
      isServing = true;
    },
    stop: () => {
      isServing = false;
    },
  };
  link?.answer({ ready: async () => ((await isReady()) ? "ready" : ""), metrics: () => metrics.metrics() });
  const isRunning = await runProcess(createLifetime([control, internal, serving], log), control.fleet.workerUp);
  if (isRunning) link?.tellReady({});
}

/** The control processes and gateways of several machines reach each other by Redis. */
async function shareByRedis(
  { redisUrl = "" }: Config,
  log: Log,
  registry: Registry,
): Promise<Pick<ControlPlaneOptions, "bus" | "busPart">> {
  // Not loaded where there is none: the process starts again within a lease.
  const { createRedis } = await import("../../src/platform/redis/redis.ts");
  const { createRedisBus } = await import("../../src/platform/redis/redis-bus.ts");
  const redis = createRedis({ url: redisUrl, log, registry });
  return { bus: createRedisBus(redis), busPart: redis };
}
