import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, Http2ServerResponse } from "node:http2";

// Milliseconds to keep reading after the response: closing earlier may reset the connection before the client has read
// the response (RFC 9112, section 9.6).
export const lingerMs = 1_000;

interface Exchange {
  readonly response: ServerResponse;
  readonly since: number;
}

/** Requests with an unfinished body. Overdue requests are ended, since they occupy a connection and memory. */
export class SlowBodies {
  readonly #patienceMs: number;
  readonly #coming = new Map<IncomingMessage, Exchange>();

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /** Watches a request after its headers. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { "content-length": length = "0", "transfer-encoding": coding } = request.headers;
    if (request.httpVersionMajor === 1 ? coding === undefined && length === "0" : request.complete) return;
    this.#coming.set(request, { response, since: performance.now() });
    // Node emits "close" as soon as the body is read or the connection is lost.
    request.once("close", () => this.#coming.delete(request));
    // The HTTP/2 stream emits "finish" while it still knows whether the client has ended its side.
    const answer = response instanceof Http2ServerResponse ? response.stream : response;
    answer.once("finish", () => {
      this.#coming.delete(request);
      if (hasCome(request, response)) return;
      // Keeps reading, because Node closes an unread HTTP/2 stream, which hides whether the client has ended its side.
      request.resume();
      setTimeout(endOf(request, response), lingerMs).unref();
    });
  }

  /** Stops watching a request whose body may exceed the time limit, such as a stream. */
  leave(request: IncomingMessage): void {
    this.#coming.delete(request);
  }

  /** Ends overdue requests. `refuse` responds to HTTP/1.1 requests without a response. */
  sweep(refuse: (request: IncomingMessage) => void): void {
    const latest = performance.now() - this.#patienceMs;
    // Ordered by age, so the first request in time ends the loop.
    for (const [request, { response, since }] of this.#coming) {
      if (since > latest) return;
      this.#coming.delete(request);
      if (request.httpVersionMajor === 1 && !response.headersSent) {
        refuse(request);
      } else {
        endOf(request, response)();
      }
    }
  }
}

/** Returns whether the body of an answered request was received completely. */
function hasCome(request: IncomingMessage, response: ServerResponse): boolean {
  return response instanceof Http2ServerResponse
    ? response.stream.state.state !== constants.NGHTTP2_STREAM_STATE_OPEN
    : request.complete;
}

/** Returns a function that ends an exchange and its connection. HTTP/2 first finishes other requests. */
function endOf(request: IncomingMessage, response: ServerResponse): () => void {
  if (!(response instanceof Http2ServerResponse)) return () => request.complete || request.destroy();
  // The session is read now, because Node drops the session together with the stream.
  const { stream } = response;
  const { session } = stream;
  return () => {
    // The client may have ended the stream and started other requests.
    if (stream.closed) return;
    session?.close();
    stream.close(constants.NGHTTP2_CANCEL);
  };
}
