import { type IncomingMessage, METHODS, type ServerResponse } from "node:http";
import { Http2ServerResponse } from "node:http2";
import type { PlatformParts } from "../src/platform/platform-parts.ts";
import type { GatewayCall } from "./gateway-call.ts";
import type { HttpHandler } from "./listen.ts";

declare module "node:http" {
  interface IncomingMessage {
    /** Pattern of the path, such as `/v1/sessions/:id`. Undefined for an unknown path. */
    route?: string | undefined;
    /** Call of the request, if it reaches a method. */
    call?: GatewayCall;
    /** Account of a request that reaches no method. */
    accountId?: string;
  }
}

/**
 * Writes a line for each request when its response or stream has ended. Lines have the pattern of the path, and neither
 * the path nor the query, which may contain credentials.
 */
export interface AccessLog {
  /** Logs an HTTP request. */
  readonly onRequest: HttpHandler;
  /** Logs a request to open a WebSocket. */
  readonly onUpgrade: HttpHandler;
  /** Logs a call of the gRPC port. */
  onGrpcCall(call: GatewayCall, route: string): void;
}

/** Status of a request whose client disconnected before the response, as nginx logs it. */
const clientClosedRequest = 499;

const verbs: ReadonlySet<string> = new Set(METHODS);

export interface AccessLogOptions extends Pick<PlatformParts, "clock" | "log"> {
  requestIdOf(request: IncomingMessage): string;
}

/** Creates the log, whose lines are written at any LOG_LEVEL. */
export function createAccessLog({ clock, log, requestIdOf }: AccessLogOptions): AccessLog {
  const lines = log.child({}, { level: "info" });
  const elapsedFrom = (startedAt: number): number => Math.round(clock.monotonic() - startedAt);

  function write(request: IncomingMessage, status: number, bytes: number, startedAt: number): void {
    const { route, call, accountId = call?.accountId } = request;
    // A client of HTTP/2 chooses the text of the method.
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
        // An accepted WebSocket has written its own headers.
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

/** Counts the bytes of a response's body. */
function countBody(response: ServerResponse): () => number {
  let bytes = 0;
  const count = (chunk: unknown): void => {
    if (typeof chunk === "string") bytes += Buffer.byteLength(chunk);
    else if (chunk instanceof Uint8Array) bytes += chunk.byteLength;
  };
  const { write, end } = response;
  // Replaces both methods. All overloads pass their arguments on unchanged.
  Object.assign(response, {
    write(...parameters: unknown[]) {
      count(parameters[0]);
      return Reflect.apply(write, response, parameters);
    },
    end(...parameters: unknown[]) {
      // Over HTTP/2, Node calls `write` for the last chunk.
      if (!(response instanceof Http2ServerResponse)) count(parameters[0]);
      return Reflect.apply(end, response, parameters);
    },
  });
  return () => bytes;
}
