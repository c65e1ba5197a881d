import type { Message } from "@bufbuild/protobuf";
import {
  type Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { errorTable } from "../../src/platform/error-table.ts";
import type { ServedMethod, ServedService } from "../../src/registry.ts";
import { GatewayCall } from "../call.ts";
import { type Peer, peerOf } from "../front.ts";
import type { HttpHandler } from "../listen.ts";
import type { Gate } from "../policies/index.ts";
import type { Problems } from "../problems.ts";
import { errorDetails } from "./error-details.ts";

// The same bound as a REST body's. What a client may send larger goes as a stream.
const READ_MAX_BYTES = 1024 * 1024;
// Captures are at most 64 MiB; the message around one adds less than this.
const WRITE_MAX_BYTES = 65 * 1024 * 1024;

const peerKey = createContextKey<Peer | undefined>(undefined);

/** What the transport needs besides the registry. */
export interface RpcContext {
  readonly gate: Gate;
  readonly problems: Problems;
}

/** Serves Connect, gRPC-Web and gRPC on the main port; requests for other paths go to `next`. */
export function connectHandler(
  services: readonly ServedService[],
  context: RpcContext,
  next: HttpHandler,
): HttpHandler {
  const router = createConnectRouter({
    jsonOptions: { useProtoFieldName: true },
    readMaxBytes: READ_MAX_BYTES,
    writeMaxBytes: WRITE_MAX_BYTES,
  });
  for (const { methods } of services) {
    for (const served of methods) {
      mount(router, served, context);
    }
  }
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  return (request, response) => {
    const handler = handlers.get(request.url?.split("?", 1)[0] ?? "");
    if (!handler) {
      next(request, response);
      return;
    }
    const values = createContextValues().set(peerKey, peerOf(request));
    handler(universalRequestFromNodeRequest(request, response, undefined, values))
      .then((answer) => universalResponseToNodeResponse(answer, response))
      // The connection broke while the answer was written: there is nobody left to tell.
      .catch(() => response.destroy());
  };
}

function mount(router: ConnectRouter, served: ServedMethod, { gate, problems }: RpcContext): void {
  const failWith = (thrown: unknown, context: HandlerContext): ConnectError => {
    const { requestId } = peerIn(context);
    const failure = problems.failure(thrown, requestId);
    if (failure.retryAfter !== undefined) {
      context.responseHeader.set("retry-after", String(failure.retryAfter));
    }
    const { code, title } = errorTable[failure.slug];
    const error = new ConnectError(failure.detail ?? title, code as Code);
    error.details = errorDetails(failure, requestId).map(({ desc, value }) => ({ desc, value }));
    return error;
  };
  switch (served.kind) {
    case "unary":
      router.rpc(served.method, async (request: Message, context: HandlerContext) => {
        try {
          return await gate.unary(await admit(served, context, gate), request);
        } catch (thrown) {
          throw failWith(thrown, context);
        }
      });
      break;
    case "server_streaming":
      router.rpc(served.method, async function* (request: Message, context: HandlerContext) {
        try {
          yield* gate.serverStream(await admit(served, context, gate), request);
        } catch (thrown) {
          throw failWith(thrown, context);
        }
      });
      break;
    case "bidi_streaming":
      router.rpc(served.method, async function* (requests: AsyncIterable<Message>, context: HandlerContext) {
        try {
          yield* gate.bidiStream(await admit(served, context, gate), requests);
        } catch (thrown) {
          throw failWith(thrown, context);
        }
      });
      break;
  }
}

function peerIn(context: HandlerContext): Peer {
  const peer = context.values.get(peerKey);
  if (!peer) {
    throw new Error("the request carries no peer");
  }
  return peer;
}

async function admit(served: ServedMethod, context: HandlerContext, gate: Gate): Promise<GatewayCall> {
  const incoming = { ...peerIn(context), header: (name: string) => context.requestHeader.get(name) ?? undefined };
  const call = new GatewayCall(served, incoming, context.timeoutMs());
  context.signal.addEventListener("abort", () => call.cancel(), { once: true });
  try {
    await gate.admit(call);
  } finally {
    for (const [name, value] of Object.entries(call.responseHeaders)) {
      context.responseHeader.set(name, value);
    }
  }
  return call;
}
