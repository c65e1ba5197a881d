import { type IncomingMessage, METHODS, type ServerResponse } from "node:http";
import { Http2ServerResponse } from "node:http2";
import type { PlatformParts } from "../src/platform/platform-parts.ts";
import type { GatewayCall } from "./gateway-call.ts";
import type { HttpHandler } from "./listen.ts";

declare module "node:http" {
  interface IncomingMessage {
    /** Pattern of the path, such as `/v1/sessions/:id`. Undefined if the request reached no route. */
    route?: string | undefined;
    /** Call of the request. Undefined if the request belongs to no method. */
    call?: GatewayCall;
    /** Account of the sender of an MCP request, which has no `call`. */
    accountId?: string;
  }
}

/**
 * Writes a line for each request when its response or stream has ended. Lines contain the pattern of the path, but not
 * the path or the query, because both may contain credentials.
 */
export interface AccessLog {
  /** Logs an HTTP request. */
  readonly onRequest: HttpHandler;
  /** Logs a request to open a WebSocket. */
  readonly onUpgrade: HttpHandler;
  /** Logs a call of the gRPC port. */
  onGrpcCall(call: GatewayCall, route: string): void;
}

/** Status that is logged if the client disconnected before the response, as in nginx. */
const clientClosedRequest = 499;

const verbs: ReadonlySet<string> = new Set(METHODS);

export interface AccessLogOptions extends Pick<PlatformParts, "clock" | "log"> {
  requestIdOf(request: IncomingMessage): string;
}

/** Creates the access log. Its lines are written at every LOG_LEVEL. */
export function createAccessLog({ clock, log, requestIdOf }: AccessLogOptions): AccessLog {
  const lines = log.child({}, { level: "info" });
  const elapsedFrom = (startedAt: number): number => Math.round(clock.monotonic() - startedAt);

  function write(request: IncomingMessage, status: number, bytes: number, startedAt: number): void {
    const { route, call, accountId = call?.accountId } = request;
    // Over HTTP/2, the method is any text that the client sends.
    const method = verbs.has(request.method ?? "") ? request.method : "other";
    const fields = { route, method, status, problem: call?.problem, ms: elapsedFrom(startedAt), bytes };
    lines.info({ ...fields, request_id: requestIdOf(request), account_id: accountId }, "request");
  }

  return {
    onRequest(request, response) {
      const startedAt = clock.monotonic();
      const counted = countBody(response);
      response.once("close", () =>
        write(request, response.headersSent ? response.statusCode : clientClosedRequest, counted(), startedAt),
      );
    },
    onUpgrade(request, response) {
      const startedAt = clock.monotonic();
      const { socket } = request;
      const { bytesWritten } = socket;
      socket.once("close", () => {
        const sent = socket.bytesWritten - bytesWritten;
        // `ws` writes the headers of an accepted WebSocket to the socket, so `response` has sent none.
        const status = sent > 0 ? 101 : clientClosedRequest;
        write(request, response.headersSent ? response.statusCode : status, sent, startedAt);
      });
    },
    onGrpcCall(call, route) {
      const fields = { route, method: "POST", status: 200, problem: call.problem };
      const sender = { request_id: call.requestId, account_id: call.accountId };
      lines.info({ ...fields, ms: elapsedFrom(call.startedAt), ...sender }, "request");
    },
  };
}

/** Counts the bytes that are written to a response's body. Returns a function that returns the count. */
function countBody(response: ServerResponse): () => number {
  let bytes = 0;
  const count = (chunk: unknown): void => {
    if (typeof chunk === "string") bytes += Buffer.byteLength(chunk);
    else if (chunk instanceof Uint8Array) bytes += chunk.byteLength;
  };
  const { write, end } = response;
  // Wraps both methods. The arguments of every overload are passed on unchanged.
  Object.assign(response, {
    write(...parameters: unknown[]) {
      count(parameters[0]);
      return Reflect.apply(write, response, parameters);
    },
    end(...parameters: unknown[]) {
      // Over HTTP/2, Node's `end` passes the last chunk to `write`, which counts the chunk.
      if (!(response instanceof Http2ServerResponse)) count(parameters[0]);
      return Reflect.apply(end, response, parameters);
    },
  });
  return () => bytes;
}
