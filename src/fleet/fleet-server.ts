import { chmod, rm } from "node:fs/promises";
import { ControlService } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type FleetTlsFiles, fleetServerCredentials } from "../platform/grpc/fleet-tls.ts";
import { failureToStatus } from "../platform/grpc/grpc-failure.ts";
import { addGrpcService, createLinkServer, listenGrpc, stopGrpcServer } from "../platform/grpc/grpc-server.ts";
import type { Log } from "../platform/log.ts";
import type { WorkerRegistry } from "./worker-registry.ts";

/** The port on which workers register, heartbeat and report. */
export interface FleetServer {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** The TCP port that it listens on; 0 on a unix socket. */
  readonly port: number;
}

/** Where the server listens: `host:port`, or `unix:/path`. */
export interface FleetServerOptions {
  readonly listen: string;
  readonly tls: FleetTlsFiles | undefined;
  readonly registry: WorkerRegistry;
  readonly log: Log;
}

/** Milliseconds for calls that run when the server is stopped: they are short. */
const drainTime = 2_000;

/** Makes the server; it listens when it is started. */
export function createFleetServer({ listen, tls, registry, log }: FleetServerOptions): FleetServer {
  const server = createLinkServer();
  const path = listen.startsWith("unix:") ? listen.slice("unix:".length) : undefined;
  let port = 0;
  addGrpcService(
    server,
    ControlService,
    {
      register: (_call, request) => registry.register(request),
      heartbeat: (call, request) => registry.heartbeat(call.metadata, request),
      report: (call, request) => registry.report(call.metadata, request),
    },
    {
      // Register brings the token in its message, the others are identified by the registry.
      admit: () => undefined,
      toStatus(thrown) {
        log.debug({ err: thrown }, "a worker's call failed");
        return failureToStatus(thrown);
      },
    },
  );
  return {
    get port() {
      return port;
    },
    async start() {
      // A socket that a killed gateway left; the gateway lock says that nobody else listens on it.
      if (path !== undefined) await rm(path, { force: true });
      port = await listenGrpc(server, listen, fleetServerCredentials(tls));
      if (path !== undefined) await chmod(path, 0o600);
    },
    stop: () => stopGrpcServer(server, drainTime),
  };
}
