import type { EventEmitter } from "node:events";
import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import {
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type StatusObject,
  type sendUnaryData,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import { toServiceDefinition } from "../../src/platform/grpc-codec.ts";
import type { ServedMethod, ServedService } from "../../src/registry.ts";
import { GatewayCall } from "../call.ts";
import { MessageQueue } from "../message-queue.ts";
import type { Gate } from "../policies/index.ts";
import type { Problems } from "../problems.ts";
import { requestIdOf } from "../request-id.ts";
import { errorDetails } from "./error-details.ts";
import { addReflection } from "./reflection.ts";

type AnyCall =
  | ServerUnaryCall<Message, Message>
  | ServerWritableStream<Message, Message>
  | ServerDuplexStream<Message, Message>;

/** What the server needs besides the registry. */
export interface GrpcContext {
  readonly gate: Gate;
  readonly problems: Problems;
  readonly makeRequestId: () => string;
}

/** The gRPC port: the registry over grpc-js, with reflection and health. */
export class GrpcServer {
  readonly #server = new Server({
    "grpc.max_receive_message_length": 1024 * 1024,
    "grpc.max_send_message_length": 65 * 1024 * 1024,
  });
  readonly #health = new HealthImplementation({ "": "SERVING" });
  readonly #services: readonly ServedService[];

  constructor(services: readonly ServedService[], context: GrpcContext) {
    this.#services = services;
    for (const { service, methods } of services) {
      const handlers = Object.fromEntries(
        methods.map((served) => [served.method.localName, handlerOf(served, context)]),
      );
      this.#server.addService(toServiceDefinition(service), handlers);
      this.#health.setStatus(service.typeName, "SERVING");
    }
    this.#health.addToServer(this.#server);
    addReflection(this.#server, services);
  }

  /** Listens, and returns the port. */
  start(host: string, port: number, tls: { cert: Buffer; key: Buffer } | undefined): Promise<number> {
    const credentials = tls
      ? ServerCredentials.createSsl(null, [{ private_key: tls.key, cert_chain: tls.cert }])
      : ServerCredentials.createInsecure();
    const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
    });
  }

  /** Takes no new calls, lets those that run finish, and ends what is left after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    for (const { service } of this.#services) {
      this.#health.setStatus(service.typeName, "NOT_SERVING");
    }
    this.#health.setStatus("", "NOT_SERVING");
    const deadline = setTimeout(() => this.#server.forceShutdown(), graceMs);
    await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    clearTimeout(deadline);
  }
}

function handlerOf(served: ServedMethod, context: GrpcContext): UntypedHandleCall {
  switch (served.kind) {
    case "unary": {
      const handle: handleUnaryCall<Message, Message> = (call, callback) => void unary(served, call, callback, context);
      return handle;
    }
    case "server_streaming": {
      const handle: handleServerStreamingCall<Message, Message> = (call) =>
        void stream(served, call, context, (gatewayCall) => context.gate.serverStream(gatewayCall, call.request));
      return handle;
    }
    case "bidi_streaming": {
      const handle: handleBidiStreamingCall<Message, Message> = (call) => {
        const requests = new MessageQueue<Message>(call);
        call.on("data", (message: Message) => requests.push(message));
        call.on("end", () => requests.end());
        call.on("cancelled", () => requests.end());
        void stream(served, call, context, (gatewayCall) => context.gate.bidiStream(gatewayCall, requests));
      };
      return handle;
    }
  }
}

async function unary(
  served: ServedMethod,
  call: ServerUnaryCall<Message, Message>,
  callback: sendUnaryData<Message>,
  context: GrpcContext,
): Promise<void> {
  const gatewayCall = callOf(served, call, context);
  try {
    await admit(gatewayCall, call, context);
    callback(null, await context.gate.unary(gatewayCall, call.request));
  } catch (thrown) {
    callback(statusOf(thrown, gatewayCall.requestId, context));
  }
}

async function stream(
  served: ServedMethod,
  call: ServerWritableStream<Message, Message> | ServerDuplexStream<Message, Message>,
  context: GrpcContext,
  run: (gatewayCall: GatewayCall) => AsyncIterable<Message>,
): Promise<void> {
  const gatewayCall = callOf(served, call, context);
  // grpc-js says errors of the transport here; the cancellation that comes with them is what ends the call.
  call.on("error", () => gatewayCall.cancel());
  try {
    await admit(gatewayCall, call, context);
    for await (const message of run(gatewayCall)) {
      if (call.cancelled) {
        return;
      }
      if (!call.write(message)) {
        await drained(call);
      }
    }
    call.end();
  } catch (thrown) {
    call.emit("error", statusOf(thrown, gatewayCall.requestId, context));
  }
}

function drained(call: ServerWritableStream<Message, Message> | ServerDuplexStream<Message, Message>): Promise<void> {
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

function callOf(served: ServedMethod, call: AnyCall, context: GrpcContext): GatewayCall {
  const header = (name: string): string | undefined => call.metadata.get(name).map(String).join(", ") || undefined;
  const deadline = call.getDeadline();
  const remaining = Number(deadline) - Date.now();
  const incoming = {
    requestId: requestIdOf(header("x-request-id"), context.makeRequestId),
    clientAddress: call.getPeer().replace(/:\d+$/, ""),
    header,
  };
  const gatewayCall = new GatewayCall(served, incoming, Number.isFinite(remaining) ? remaining : undefined);
  const emitter: EventEmitter = call;
  emitter.on("cancelled", () => gatewayCall.cancel());
  return gatewayCall;
}

/** Runs the policies; request id and rate limits go out as headers whatever they decide. */
async function admit(gatewayCall: GatewayCall, call: AnyCall, { gate }: GrpcContext): Promise<void> {
  try {
    await gate.admit(gatewayCall);
  } finally {
    const metadata = new Metadata();
    metadata.set("x-request-id", gatewayCall.requestId);
    for (const [name, value] of Object.entries(gatewayCall.responseHeaders)) {
      metadata.set(name, value);
    }
    call.sendMetadata(metadata);
  }
}

function statusOf(thrown: unknown, requestId: string, { problems }: GrpcContext): StatusObject & Error {
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
  return Object.assign(new Error(details), { code, details, metadata });
}
