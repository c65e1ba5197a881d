import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import type { Readable } from "node:stream";

// Milliseconds to keep reading after the response: closing earlier may reset the connection before the client has read
// the response (RFC 9112, section 9.6).
export const lingerMs = 1_000;

/**
 * Bytes of a request to drain after its response is known. A client that sends its whole request before it reads then
 * receives the response. Draining takes 2 ms of the event loop per MiB over HTTP/2, where a new connection is cheaper,
 * and 0.7 ms over HTTP/1.1.
 */
const maxDrained = { http1: 2 * 1024 * 1024, http2: 64 * 1024 };

/** Turns of the event loop within which Node sends the end of a response, unless the connection is congested. */
const turnsToEnd = 8;

interface Exchange {
  readonly response: ServerResponse;
  readonly since: number;
}

/** Requests with an unfinished body. Overdue requests are ended, since they occupy a connection and memory. */
export class SlowBodies {
  readonly #timeoutMs: number;
  readonly #unfinished = new Map<IncomingMessage, Exchange>();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Starts to limit the time of a request's body. Call when the headers have arrived. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { "content-length": length = "0", "transfer-encoding": coding } = request.headers;
    if (request.httpVersionMajor === 1 ? coding === undefined && length === "0" : request.complete) return;
    this.#unfinished.set(request, { response, since: performance.now() });
    // Node emits "close" as soon as the body is read or the connection is lost.
    request.once("close", () => this.#unfinished.delete(request));
    if (response instanceof Http2ServerResponse) {
      const { stream } = response;
      stream.once("finish", () => this.#unfinished.delete(request));
      drainAfterResponse(stream);
      return;
    }
    // Before Node's listener, which would read an untouched body without a limit.
    response.prependOnceListener("finish", () => {
      this.#unfinished.delete(request);
      if (request.complete) return;
      request.read(0);
      drain(request, maxDrained.http1);
      setTimeout(() => request.complete || request.destroy(), lingerMs).unref();
    });
  }

  /** Stops watching a request whose body may exceed the time limit, such as a stream. */
  unwatch(request: IncomingMessage): void {
    this.#unfinished.delete(request);
  }

  /** Ends overdue requests. `refuse` responds to HTTP/1.1 requests that have no response yet. */
  sweep(refuse: (request: IncomingMessage) => void): void {
    const latest = performance.now() - this.#timeoutMs;
    // The oldest request comes first, so the first request that is not overdue ends the loop.
    for (const [request, { response, since }] of this.#unfinished) {
      if (since > latest) return;
      this.#unfinished.delete(request);
      if (response instanceof Http2ServerResponse) endStream(response.stream);
      else if (!response.headersSent) refuse(request);
      else if (!request.complete) request.destroy();
    }
  }
}

/**
 * Drains a limited part of an HTTP/2 request whose client still sends after the response. Then ends the stream and its
 * connection, without an error, so that the response remains valid (RFC 9113, section 8.1). Keeps the connection if the
 * client ends its side in time.
 */
export function drainAfterResponse(stream: ServerHttp2Stream): void {
  stream.once("finish", () => {
    const isEnded =
      stream.closed || (stream.state.state !== constants.NGHTTP2_STREAM_STATE_OPEN && !isAnswered(stream));
    if (isEnded) return;
    drain(stream, maxDrained.http2, () => endOnceSent(stream, turnsToEnd));
    setTimeout(() => endStream(stream), lingerMs).unref();
  });
}

/** Discards a limited part of the rest of a body. If more follows, stops reading and calls `onMore`. */
function drain(body: Readable, maxBytes: number, onMore?: () => void): void {
  let drained = 0;
  const discard = (part: Buffer): void => {
    drained += part.length;
    if (drained <= maxBytes) return;
    body.off("data", discard).pause();
    onMore?.();
  };
  body.on("data", discard).resume();
}

function endOnceSent(stream: ServerHttp2Stream, turns: number): void {
  setImmediate(() => {
    if (stream.closed || isAnswered(stream)) endStream(stream);
    else if (turns > 0) endOnceSent(stream, turns - 1);
  });
}

/** Returns whether the response of a stream was sent completely, but its request is incomplete. */
const isAnswered = ({ state }: ServerHttp2Stream): boolean =>
  state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_LOCAL;

/** Ends a stream, and closes its connection when the connection's other streams have finished. */
function endStream(stream: ServerHttp2Stream): void {
  // The client may have ended the stream and started others.
  if (!stream.closed) {
    stream.session?.close();
    stream.close(isAnswered(stream) ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_CANCEL);
  }
  // Node releases a stream only after its data was read.
  stream.resume();
}
