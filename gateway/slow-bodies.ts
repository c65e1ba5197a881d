import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, Http2ServerResponse } from "node:http2";

// A client that has its answer and still sends is read on for this long: a connection that is closed meanwhile may be reset
// before the client has read the answer (RFC 9112, section 9.6).
export const lingerMs = 1_000;

interface Exchange {
  readonly response: ServerResponse;
  readonly since: number;
}

/** Requests whose body is on its way. One that takes too long is ended: it holds a connection, and memory behind it. */
export class SlowBodies {
  readonly #patienceMs: number;
  readonly #coming = new Map<IncomingMessage, Exchange>();

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /** Watches a request whose headers have come. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { "content-length": length = "0", "transfer-encoding": coding } = request.headers;
    if (request.httpVersionMajor === 1 ? coding === undefined && length === "0" : request.complete) return;
    this.#coming.set(request, { response, since: performance.now() });
    // Node says this as soon as the body is read, or the connection lost.
    request.once("close", () => this.#coming.delete(request));
    // The stream of HTTP/2 says this while it still knows whether the client has ended its side.
    const answer = response instanceof Http2ServerResponse ? response.stream : response;
    answer.once("finish", () => {
      this.#coming.delete(request);
      if (hasCome(request, response)) return;
      // Node closes a stream of HTTP/2 that nobody reads by itself: then nobody knows whether the client has ended it.
      request.resume();
      setTimeout(endOf(request, response), lingerMs).unref();
    });
  }

  /** Leaves a request to its door, which has a rule of its own: the body of a stream may last as long as the stream. */
  leave(request: IncomingMessage): void {
    this.#coming.delete(request);
  }

  /** Gives up requests that have taken too long; `refuse` answers those over HTTP/1.1 that have no answer yet. */
  sweep(refuse: (request: IncomingMessage) => void): void {
    const latest = performance.now() - this.#patienceMs;
    // The oldest come first: the first one that is in time ends the search.
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

/** Says whether a request that has just been answered has come whole. */
function hasCome(request: IncomingMessage, response: ServerResponse): boolean {
  return response instanceof Http2ServerResponse
    ? response.stream.state.state !== constants.NGHTTP2_STREAM_STATE_OPEN
    : request.complete;
}

/** What ends an exchange and its connection: over HTTP/2 when the other requests on it are through. */
function endOf(request: IncomingMessage, response: ServerResponse): () => void {
  if (!(response instanceof Http2ServerResponse)) return () => request.complete || request.destroy();
  // Node forgets it with the stream, which it closes by itself.
  const { stream } = response;
  const { session } = stream;
  return () => {
    // The client has ended it meanwhile, and may have begun other requests.
    if (stream.closed) return;
    session?.close();
    stream.close(constants.NGHTTP2_CANCEL);
  };
}
