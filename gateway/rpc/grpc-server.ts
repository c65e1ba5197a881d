import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import {
  type ConnectionInjector,
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerWritableStream,
  type StatusObject,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import { toServiceDefinition } from "../../src/platform/grpc/grpc-codec.ts";
import type { ServedMethod, ServedService } from "../../src/registry.ts";
import type { ConnectionCap } from "../connection-cap.ts";
import type { Door } from "../door.ts";
import { type Certificate, Listener } from "../listener.ts";
import { longestMessage } from "../message-size.ts";
import type { TimeLimits } from "../time-limits.ts";
import { errorDetails } from "./error-details.ts";
import { admission, callOf } from "./grpc-admission.ts";
import { addReflection } from "./reflection.ts";

type Answering = ServerWritableStream<Message, Message> | ServerDuplexStream<Message, Message>;

/** Where the gRPC port listens. */
export interface GrpcServerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: Certificate | undefined;
  readonly takes: ConnectionCap;
  readonly limits: TimeLimits;
}

/** The gRPC port: the registry over grpc-js, with reflection and health. */
export class GrpcServer {
  readonly #server: Server;
  readonly #listener: Listener;
  readonly #connections: ConnectionInjector;
  readonly #health = new HealthImplementation({ "": "SERVING" });
  readonly #services: readonly ServedService[];

  constructor(services: readonly ServedService[], door: Door, options: GrpcServerOptions) {
    const { limits } = options;
    this.#services = services;
    this.#server = new Server({
      // grpc-js has one bound for all methods.
      "grpc.max_receive_message_length": Math.max(
        ...services.flatMap(({ methods }) => methods.map((served) => longestMessage(served))),
      ),
      "grpc.max_send_message_length": 65 * 1024 * 1024,
      "grpc.max_concurrent_streams": 250,
      "grpc.max_connection_idle_ms": limits.idle,
      // A client that has gone without a word would keep its streams.
      "grpc.keepalive_time_ms": 60_000,
      "grpc.keepalive_timeout_ms": 20_000,
      interceptors: [
        admission({ door, methods: byPath(services), messageMs: limits.request, statusOf: statusOf(door) }),
      ],
    });
    for (const { service, methods } of services) {
      const handlers = Object.fromEntries(methods.map((served) => [served.method.localName, handlerOf(served, door)]));
      this.#server.addService(toServiceDefinition(service), handlers);
      this.#health.setStatus(service.typeName, "SERVING");
    }
    this.#health.addToServer(this.#server);
    addReflection(this.#server, services);
    // The listener has ended the TLS.
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

  /** Takes no new calls, lets those that run finish, and ends what is left after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    for (const { service } of this.#services) {
      this.#health.setStatus(service.typeName, "NOT_SERVING");
    }
    this.#health.setStatus("", "NOT_SERVING");
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

function handlerOf(served: ServedMethod, door: Door): UntypedHandleCall {
  const { gate } = door;
  switch (served.kind) {
    case "unary": {
      const handle: handleUnaryCall<Message, Message> = async (call, callback) => {
        const gatewayCall = callOf(call.metadata);
        try {
          callback(null, await gate.unary(gatewayCall, call.request));
        } catch (thrown) {
          callback(statusOf(door)(thrown, gatewayCall.requestId));
        }
      };
      return handle;
    }
    case "server_streaming": {
      const handle: handleServerStreamingCall<Message, Message> = (call) =>
        void answer(call, door, () => gate.serverStream(callOf(call.metadata), call.request));
      return handle;
    }
    case "bidi_streaming": {
      const handle: handleBidiStreamingCall<Message, Message> = (call) =>
        void answer(call, door, () => gate.bidiStream(callOf(call.metadata), requestsOf(call)));
      return handle;
    }
  }
}

/** The messages of a client until it ends its side, or goes away: that ends the call by its own way. */
async function* requestsOf(call: ServerDuplexStream<Message, Message>): AsyncGenerator<Message> {
  try {
    // The stream goes on in the other direction when nobody reads requests any more.
    yield* call.iterator({ destroyOnReturn: false });
  } catch (thrown) {
    if (!call.cancelled) throw thrown;
  }
}

async function answer(call: Answering, door: Door, run: () => AsyncIterable<Message>): Promise<void> {
  // grpc-js says errors of the transport here; the cancellation that comes with them is what ends the call.
  call.on("error", () => undefined);
  try {
    for await (const message of run()) {
      if (call.cancelled) return;
      if (!call.write(message)) await drained(call);
    }
    call.end();
  } catch (thrown) {
    call.emit("error", statusOf(door)(thrown, callOf(call.metadata).requestId));
  }
}

function drained(call: Answering): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      call.off("drain", done);
      call.off("cancelled", done);
      resolve();
    };
    call.on("drain", done);
    call.on("cancelled", done);
  });
}

/** Turns anything thrown into the status that ends a call. */
function statusOf({ problems }: Door): (thrown: unknown, requestId: string) => StatusObject & Error {
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
    return Object.assign(new Error(details), { code, details, metadata });
  };
}
