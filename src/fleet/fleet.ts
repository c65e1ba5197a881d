import { join } from "node:path";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { controlSocket, createEmbeddedWorker, type EmbeddedWorker } from "./embedded-worker.ts";
import { createFleetServer, type FleetServer } from "./fleet-server.ts";
import { createLeaseSweep } from "./lease-sweep.ts";
import type { SessionKeeper, WorkerEnd } from "./session-keeper.ts";
import { leaseMs } from "./store.ts";
import { createWorkerRegistry } from "./worker-registry.ts";
import { ensureWorkerToken } from "./worker-token.ts";

/** Manages workers in the control process. */
export interface Fleet {
  start(): Promise<void>;
  /** Stops the embedded worker and its sessions. Separate workers keep running. */
  stop(): Promise<void>;
  /** TCP port for workers, or 0 for a unix socket. */
  readonly port: number;
  /**
   * Resolves when the embedded worker is up. Rejects with StartRefused if the worker cannot start. Resolves at once if
   * there is no embedded worker.
   */
  workerUp(): Promise<void>;
  /** Process id of the running embedded worker. */
  readonly embeddedWorkerPid: number | undefined;
}

export interface FleetParts extends Pick<PlatformParts, "config" | "db" | "bus" | "ids" | "clock" | "log" | "metrics"> {
  readonly keeper: SessionKeeper;
  /** Program of the embedded worker, or undefined if workers are started separately. */
  readonly workerProgram: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Sends spans of workers to the trace collector, at most once and without waiting. Undefined without a collector. */
  readonly forwardSpans?: ((spans: Uint8Array) => void) | undefined;
}

/** Creates the fleet without starting it. */
export function createFleet(parts: FleetParts): Fleet {
  const { config, log, workerProgram } = parts;
  const { dataDir, embedded, fleetTls: tls } = config;
  const sweep = createLeaseSweep(parts);
  let server: FleetServer | undefined;
  let worker: EmbeddedWorker | undefined;

  /** Ends the sessions of the embedded worker without waiting for its lease, because the worker has ended. */
  async function endSessions(end: WorkerEnd): Promise<void> {
    await sweep
      .endAll(end)
      .catch((error: unknown) => log.warn({ err: error }, "failed to end sessions of the embedded worker"));
  }

  return {
    get port() {
      return server?.port ?? 0;
    },
    get embeddedWorkerPid() {
      return worker?.pid;
    },
    workerUp: async () => worker?.up,
    async start() {
      if (server) return;
      const workerToken = config.workerToken ?? (await ensureWorkerToken(dataDir));
      const listen = embedded ? controlSocket(dataDir) : `${config.host}:${config.fleetPort}`;
      const registry = createWorkerRegistry({ ...parts, workerToken });
      server = createFleetServer({ listen, tls: embedded ? undefined : tls, registry, log });
      await server.start();
      sweep.start();
      if (workerProgram === undefined) return;
      const onDeath = () => endSessions({ reason: "worker_lost", detail: "the worker died" });
      const heartbeats = () => registry.heartbeats;
      const supervision = { heartbeats, leaseMs, onDeath };
      worker = createEmbeddedWorker({ ...parts, ...supervision, dataDir, workerToken, program: workerProgram });
      await worker.start();
    },
    async stop() {
      await worker?.stop();
      await sweep.stop();
      if (worker) await endSessions({ reason: "worker_drained", detail: "the service was stopped" });
      await server?.stop();
      worker = undefined;
      server = undefined;
    },
  };
}

/** Path of the worker's program in the same installation. */
export const bundledWorkerProgram = join(import.meta.dirname, "..", "..", "workers", "main.ts");
