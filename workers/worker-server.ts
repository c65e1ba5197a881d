import { timingSafeEqual } from "node:crypto";
import { WorkerService } from "../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { errorTable } from "../src/platform/error-table.ts";
import type { FleetTlsFiles } from "../src/platform/grpc/fleet-certificates.ts";
import {
  addGrpcService,
  createFleetGrpcServer,
  type GrpcCall,
  listenGrpc,
  stopGrpcServer,
} from "../src/platform/grpc/fleet-grpc-server.ts";
import { fleetMetadata } from "../src/platform/grpc/fleet-metadata.ts";
import { fleetServerCredentials } from "../src/platform/grpc/fleet-tls.ts";
import { failureToStatus, WrongAddressee } from "../src/platform/grpc/grpc-failure.ts";
import type { Log } from "./base/log.ts";
import { createWorkerHandlers, type WorkerParts } from "./fleet-handlers.ts";

const internal = errorTable.internal.code;

/** Maximum milliseconds for running calls to end when the server stops. */
const stopMs = 2_000;

export interface WorkerServerOptions extends WorkerParts {
  readonly log: Log;
  /** Hex SHA-256 of the secret that gateways must present; undefined until the worker is registered. */
  secretHash(): string | undefined;
}

/** The gRPC service through which gateways command a worker. */
export class WorkerServer {
  readonly #server = createFleetGrpcServer();
  readonly #log: Log;

  constructor(options: WorkerServerOptions) {
    const { log, secretHash } = options;
    this.#log = log;
    addGrpcService(this.#server, WorkerService, createWorkerHandlers(options), {
      admit: (call) => admit(call, secretHash()),
      toStatus: (thrown) => {
        const status = failureToStatus(thrown);
        if (status.code === internal) log.error({ err: thrown }, "failed to handle a command");
        return status;
      },
    });
  }

  /** Listens on `host:port` or `unix:/path`, with TLS if certificates are given. Returns the port. */
  listen(address: string, tls?: FleetTlsFiles): Promise<number> {
    return listenGrpc(this.#server, address, fleetServerCredentials(tls, this.#log));
  }

  /** Refuses new calls, and waits up to `stopMs` for running ones. */
  stop(): Promise<void> {
    return stopGrpcServer(this.#server, stopMs);
  }
}

function admit({ metadata }: GrpcCall, hash: string | undefined): void {
  const [shown] = metadata.get(fleetMetadata.workerSecretHash);
  const wanted = Buffer.from(hash ?? "");
  const given = Buffer.from(shown ?? "");
  // An unregistered worker has no secret, so no caller can present it.
  const isKnown = wanted.length > 0 && wanted.length === given.length && timingSafeEqual(wanted, given);
  if (!isKnown) throw new WrongAddressee("the caller does not know this worker");
}
