import { chmod, rm } from "node:fs/promises";
import { ControlService } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { FleetTlsFiles } from "../platform/grpc/fleet-certificates.ts";
import {
  addGrpcService,
  createFleetGrpcServer,
  listenGrpc,
  stopGrpcServer,
} from "../platform/grpc/fleet-grpc-server.ts";
import { fleetServerCredentials } from "../platform/grpc/fleet-tls.ts";
import { failureToStatus } from "../platform/grpc/grpc-failure.ts";
import type { Log } from "../platform/log.ts";
import type { WorkerRegistry } from "./worker-registry.ts";

/** gRPC server that workers call. */
export interface FleetServer {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** TCP port, or 0 for a unix socket. */
  readonly port: number;
}

/** `listen` is `host:port` or `unix:/path`. */
export interface FleetServerOptions {
  readonly listen: string;
  readonly tls: FleetTlsFiles | undefined;
  readonly registry: WorkerRegistry;
  readonly log: Log;
}

/** Maximum milliseconds to wait for running calls at shutdown. */
const drainMs = 2_000;

/** Creates the server without listening. */
export function createFleetServer({ listen, tls, registry, log }: FleetServerOptions): FleetServer {
  const server = createFleetGrpcServer();
  const path = listen.startsWith("unix:") ? listen.slice("unix:".length) : undefined;
  let port = 0;
  addGrpcService(
    server,
    ControlService,
    {
      register: (call, request) => registry.register(call.metadata, request),
      heartbeat: (call, request) => registry.heartbeat(call.metadata, request),
      report: (call, request) => registry.report(call.metadata, request),
      storeLogs: (call, request) => registry.storeLogs(call.metadata, request),
      exportSpans: (call, request) => registry.exportSpans(call.metadata, request),
    },
    {
      // Register carries the token in its message. The registry authenticates the other calls.
      admit: () => undefined,
      toStatus(thrown) {
        log.debug({ err: thrown }, "failed to handle a call of a worker");
        return failureToStatus(thrown);
      },
    },
  );
  return {
    get port() {
      return port;
    },
    async start() {
      // Removes the socket of a killed control process. The database lock ensures that no other process listens on it.
      if (path !== undefined) await rm(path, { force: true });
      port = await listenGrpc(server, listen, fleetServerCredentials(tls, log));
      if (path !== undefined) await chmod(path, 0o600);
    },
    stop: () => stopGrpcServer(server, drainMs),
  };
}
