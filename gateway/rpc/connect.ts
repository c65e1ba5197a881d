import type { DescMethod, Message } from "@bufbuild/protobuf";
import {
  type Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import { createAsyncIterable, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { ServedMethod, ServedService } from "../../src/kernel/registry.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import { Failure, failFields } from "../../src/platform/errors.ts";
import { GatewayCall } from "../gateway-call.ts";
import type { HttpHandler } from "../listen.ts";
import { longestMessage } from "../message-size.ts";
import { isClosed } from "../rest/mount.ts";
import { answerHeaders, peerOf, type TransportParts } from "../transport-parts.ts";
import { countedBody } from "./counted-body.ts";
import { errorDetails } from "./error-details.ts";

// Captures are at most 64 MiB; the surrounding message adds less than 1 MiB.
const writeMaxBytes = 65 * 1024 * 1024;

/** A request before it reaches its method. */
interface Arrival {
  readonly call: GatewayCall;
  /** Starts to count the bytes held for the request. */
  countMemory(): void;
}

/** Key of the function that creates the call of a request, once Connect has parsed the timeout from the headers. */
const enterKey = createContextKey<((timeoutMs: number | undefined) => Arrival) | undefined>(undefined);
const callKey = createContextKey<GatewayCall | undefined>(undefined);
/** Stage of a request. Connect reads the message after the policies and before the method. */
const stageKey = createContextKey<"admission" | "message" | "method">("admission");

/** Creates the response to an unreadable message. Connect reports malformed protobuf as an internal error. */
const refuseUnreadable = (message = "the message cannot be read") => ({
  status: 400,
  header: new Headers({ "content-type": "application/json" }),
  body: createAsyncIterable([Buffer.from(JSON.stringify({ code: "invalid_argument", message }))]),
});

/** Matches V8's messages about invalid JSON, which Connect passes on. */
const parserError = /JSON (at position \d|input)|is not valid JSON/;

/** Replaces a response whose error text is from a parser of Connect or V8. */
async function replaceParserError(answer: UniversalServerResponse): Promise<UniversalServerResponse> {
  if (answer.status === 500) return refuseUnreadable();
  if (answer.status !== 400 || !answer.body) return answer;
  const text = Buffer.concat(await Array.fromAsync(answer.body)).toString();
  return parserError.test(text)
    ? refuseUnreadable("the message is not JSON")
    : { ...answer, body: createAsyncIterable([Buffer.from(text)]) };
}

/** Serves Connect, gRPC-Web and gRPC on the main port; passes requests for other paths to `next`. */
export function connectHandler(
  services: readonly ServedService[],
  transport: TransportParts,
  next: HttpHandler,
): HttpHandler {
  const router = createConnectRouter({
    jsonOptions: { useProtoFieldName: true },
    writeMaxBytes,
    // Runs on the headers, so that clients without a key cannot make the service read a message.
    requestGate: (context) => admit(context, transport),
  });
  const methods = services.flatMap((service) => service.methods);
  for (const served of methods) {
    mount(router, served, transport);
  }
  const byMethod = new Map<DescMethod, ServedMethod>(methods.map((served) => [served.method, served]));
  const routes = new Map(
    router.handlers.map((handler) => [handler.requestPath, { handler, served: byMethod.get(handler.method) }]),
  );
  return (request, response) => {
    const { handler, served } = routes.get(request.url?.split("?", 1)[0] ?? "") ?? {};
    if (!handler || !served) {
      next(request, response);
      return;
    }
    const peer = peerOf(request, transport);
    request.route = handler.requestPath;
    let call: GatewayCall | undefined;
    const values = createContextValues().set(enterKey, (timeoutMs) => {
      const arrived = new GatewayCall(served, peer, timeoutMs);
      call = arrived;
      request.call = arrived;
      const isStream = served.kind === "bidi_streaming";
      if (isStream) transport.bodies.unwatch(request);
      const countMemory = (): void => {
        if (isClosed(response)) return;
        transport.buffers.openExchange(arrived, request, response, isStream ? 0 : longestMessage(served));
      };
      return { call: arrived, countMemory };
    });
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    // Connect's type also allows a parsed body, which is not used here.
    const body = countedBody(universal.body as AsyncIterable<Uint8Array>, {
      served,
      contentType: request.headers["content-type"] ?? "",
      hold: (bytes) => served.kind === "bidi_streaming" && call?.buffer?.set("message", bytes),
      awaitAllowance: (bytes) => call && transport.dispatcher.awaitAllowance(call, bytes),
      toError: (excess) => toConnectError(failFields("bad-request", { message: excess }), peer.requestId),
    });
    handler({ ...universal, body })
      .then(async (answer) => {
        for (const [name, value] of Object.entries(answerHeaders(transport, peer, call))) {
          response.setHeader(name, value);
        }
        const isUnread = values.get(stageKey) === "message";
        return universalResponseToNodeResponse(isUnread ? await replaceParserError(answer) : answer, response);
      })
      // The connection broke during the response, so no error can be sent.
      .catch(() => response.destroy());
  };
}

async function admit(context: HandlerContext, transport: TransportParts): Promise<void> {
  const arrival = context.values.get(enterKey)?.(context.timeoutMs());
  if (!arrival) throw new Error("expected a request that passed connectHandler");
  const { call } = arrival;
  context.values.set(callKey, call);
  context.signal.addEventListener("abort", () => call.cancel(), { once: true });
  try {
    await transport.dispatcher.admit(call);
    arrival.countMemory();
    context.values.set(stageKey, "message");
  } catch (thrown) {
    throw errorOf(thrown, context, call, transport);
  }
}

function callIn(context: HandlerContext): GatewayCall {
  const call = context.values.get(callKey);
  if (!call) throw new Error("expected a request that passed the policies");
  context.values.set(stageKey, "method");
  return call;
}

function mount(router: ConnectRouter, served: ServedMethod, transport: TransportParts): void {
  const { dispatcher } = transport;
  const options = { readMaxBytes: longestMessage(served) };
  switch (served.kind) {
    case "unary":
      router.rpc(
        served.method,
        async (request: Message, context: HandlerContext) => {
          const call = callIn(context);
          try {
            return await dispatcher.unary(call, request);
          } catch (thrown) {
            throw errorOf(thrown, context, call, transport);
          }
        },
        options,
      );
      break;
    case "server_streaming":
      router.rpc(
        served.method,
        (request: Message, context: HandlerContext) =>
          convertErrors(context, transport, (call) => dispatcher.serverStream(call, request)),
        options,
      );
      break;
    case "bidi_streaming":
      router.rpc(
        served.method,
        (requests: AsyncIterable<Message>, context: HandlerContext) =>
          convertErrors(context, transport, (call) => dispatcher.bidiStream(call, readable(requests))),
        options,
      );
      break;
  }
}

/** Yields the messages of a client. Throws `bad-request` at an unreadable message. */
async function* readable(requests: AsyncIterable<Message>): AsyncGenerator<Message> {
  try {
    yield* requests;
  } catch (thrown) {
    if (!(thrown instanceof ConnectError)) throw thrown;
    const message = parserError.test(thrown.rawMessage) ? "is not JSON" : thrown.rawMessage.replace(/^message: /, "");
    throw failFields("bad-request", { message });
  }
}

/** Yields the messages of a stream, and converts its errors for Connect. */
async function* convertErrors(
  context: HandlerContext,
  transport: TransportParts,
  run: (call: GatewayCall) => AsyncIterable<Message>,
): AsyncGenerator<Message> {
  const call = callIn(context);
  try {
    yield* run(call);
  } catch (thrown) {
    throw errorOf(thrown, context, call, transport);
  }
}

function errorOf(
  thrown: unknown,
  { responseHeader, signal }: HandlerContext,
  { requestId }: GatewayCall,
  { problems }: TransportParts,
): ConnectError {
  // Errors that follow from a disconnected client are not logged as internal.
  if (isLostStream(thrown) || (signal.aborted && !(thrown instanceof Failure))) return ConnectError.from(signal.reason);
  const failure = problems.failure(thrown, requestId);
  if (failure.retryAfter !== undefined) responseHeader.set("retry-after", String(failure.retryAfter));
  return toConnectError(failure, requestId);
}

function toConnectError(failure: Failure, requestId: string): ConnectError {
  const { code, title } = errorTable[failure.slug];
  const error = new ConnectError(failure.detail ?? title, code as Code);
  error.details = errorDetails(failure, requestId).map(({ desc, value }) => ({ desc, value }));
  return error;
}

/** Returns whether an HTTP/2 stream is gone. Node may throw this error before the signal aborts. */
function isLostStream(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === "ERR_HTTP2_INVALID_STREAM";
}
