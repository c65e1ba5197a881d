import { create, type DescService, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import {
  type ConnectionInjector,
  Metadata,
  type Server,
  ServerCredentials,
  type ServiceDefinition,
  type StatusObject,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import type { ServedMethod, ServedService } from "../../src/kernel/registry.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import { createGrpcServer, grpcHandler, type ToStatus } from "../../src/platform/grpc/fleet-grpc-server.ts";
import { toServiceDefinition } from "../../src/platform/grpc/grpc-codec.ts";
import type { Log } from "../../src/platform/log.ts";
import { bodyBounds } from "../../src/platform/rest-json/parse.ts";
import type { ConnectionCap } from "../connection-cap.ts";
import { type Certificate, Listener } from "../listener.ts";
import { longestMessage } from "../message-size.ts";
import type { TimeLimits } from "../time-limits.ts";
import type { TransportParts } from "../transport-parts.ts";
import { asBytes, readMessage, unread } from "../unread-messages.ts";
import { errorDetails } from "./error-details.ts";
import { admission, callOf } from "./grpc-admission.ts";
import { addHealth } from "./health.ts";
import { addReflection } from "./reflection.ts";

/** Options of the gRPC port. */
export interface GrpcServerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: Certificate | undefined;
  readonly accept: ConnectionCap;
  readonly log: Log;
  readonly limits: TimeLimits;
}

/** The gRPC port: the registry over grpc-js, with reflection and health. */
export class GrpcServer {
  readonly #server: Server;
  readonly #listener: Listener;
  readonly #connections: ConnectionInjector;
  readonly #health: ReturnType<typeof addHealth>;

  constructor(services: readonly ServedService[], transport: TransportParts, options: GrpcServerOptions) {
    const { limits } = options;
    const statusOf = toStatusOf(transport);
    this.#server = createGrpcServer({
      // Upper limit for all methods; admission sets the limit of each call.
      "grpc.max_receive_message_length": Math.max(
        ...services.flatMap(({ methods }) => methods.map((served) => longestMessage(served))),
      ),
      "grpc.max_send_message_length": 65 * 1024 * 1024,
      "grpc.max_concurrent_streams": 250,
      "grpc.max_connection_idle_ms": limits.idle,
      // Pings detect disconnected clients that Node does not notice, for example after GOAWAY.
      "grpc.keepalive_time_ms": 10_000,
      "grpc.keepalive_timeout_ms": limits.silence,
      interceptors: [
        admission({ transport, methods: byPath(services), messageMs: limits.request, openMs: limits.open, statusOf }),
      ],
    });
    const toStatus: ToStatus = (thrown, { metadata }) => statusOf(thrown, callOf(metadata).requestId);
    for (const { service, methods } of services) {
      const handlers = Object.fromEntries(
        methods.map((served) => [served.method.localName, handlerOf(served, transport, toStatus)]),
      );
      this.#server.addService(withUnreadMessages(service), handlers);
    }
    this.#health = addHealth(this.#server, services);
    addReflection(this.#server, services);
    // The listener has terminated TLS.
    this.#connections = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#listener = new Listener({
      ...options,
      protocols: ["h2"],
      silenceMs: limits.silence,
      onConnection: (socket) => this.#connections.injectConnection(socket),
    });
  }

  /** Listens, and returns the port. */
  start(): Promise<number> {
    return this.#listener.start();
  }

  replaceCertificate(certificate: Certificate): void {
    this.#listener.replaceCertificate(certificate);
  }

  /** Refuses new calls, lets running calls finish, and ends the remaining calls after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#health.stop();
    const closed = this.#listener.stop(graceMs);
    this.#connections.drain(graceMs);
    await closed;
    this.#server.forceShutdown();
  }
}

function byPath(services: readonly ServedService[]): Map<string, ServedMethod> {
  const methods = services.flatMap((service) => service.methods);
  return new Map(methods.map((served) => [`/${served.method.parent.typeName}/${served.method.name}`, served]));
}

/** Returns the definition of a service whose handlers receive messages as bytes. */
function withUnreadMessages(service: DescService): ServiceDefinition {
  const entries = Object.entries(toServiceDefinition(service)).map(([name, method]) => [
    name,
    { ...method, requestDeserialize: (bytes: Buffer) => bytes },
  ]);
  return Object.fromEntries(entries);
}

function handlerOf(
  { kind, method }: ServedMethod,
  { dispatcher }: TransportParts,
  toStatus: ToStatus,
): UntypedHandleCall {
  const reader = (bytes: unknown) => () => readMessage(method.input, asBytes(bytes), bodyBounds);
  switch (kind) {
    case "unary":
      return grpcHandler[kind](async ({ metadata }, request) => {
        const call = callOf(metadata);
        await dispatcher.awaitAllowance(call, asBytes(request).length);
        return dispatcher.unary(call, reader(request));
      }, toStatus);
    case "server_streaming":
      return grpcHandler[kind](async function* ({ metadata }, request) {
        const call = callOf(metadata);
        await dispatcher.awaitAllowance(call, asBytes(request).length);
        yield* dispatcher.serverStream(call, reader(request));
      }, toStatus);
    case "bidi_streaming":
      return grpcHandler[kind](
        ({ metadata }, requests) => dispatcher.bidiStream(callOf(metadata), unread(requests, method.input)),
        toStatus,
      );
  }
}

/** Converts errors to the status that ends a call. */
function toStatusOf({ problems }: TransportParts): (thrown: unknown, requestId: string) => StatusObject {
  return (thrown, requestId) => {
    const failure = problems.failure(thrown, requestId);
    const { code, title } = errorTable[failure.slug];
    const details = failure.detail ?? title;
    const metadata = new Metadata();
    const status = create(StatusSchema, {
      code,
      message: details,
      details: errorDetails(failure, requestId).map(({ desc, value }) => anyPack(desc, value)),
    });
    metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, status)));
    if (failure.retryAfter !== undefined) metadata.set("retry-after", String(failure.retryAfter));
    return { code, details, metadata };
  };
}
