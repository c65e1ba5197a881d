import type { IncomingMessage, ServerResponse } from "node:http";

// A client that has its answer and still sends is read on for this long: a connection that is closed meanwhile may be reset
// before the client has read the answer (RFC 9112, section 9.6).
const LINGER_MS = 1_000;

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
    if (request.httpVersionMajor === 1 ? coding === undefined && length === "0" : request.complete) {
      return;
    }
    this.#coming.set(request, { response, since: performance.now() });
    // Node says this as soon as the body is read, or the connection lost.
    request.once("close", () => this.#coming.delete(request));
    response.once("finish", () => {
      if (this.#coming.delete(request)) {
        setTimeout(end, LINGER_MS, request, response).unref();
      }
    });
  }

  /** Leaves a request to its door, which has a rule of its own: the body of a stream may last as long as the stream. */
  leave(request: IncomingMessage): void {
    this.#coming.delete(request);
  }

  /** Gives up requests that have taken too long; `refuse` answers those over HTTP/1.1 that have no answer yet. */
  sweep(refuse: (request: IncomingMessage) => void): void {
    const latest = performance.now() - this.#patienceMs;
    // In the order in which they came.
    for (const [request, { response, since }] of this.#coming) {
      if (since > latest) {
        return;
      }
      this.#coming.delete(request);
      if (request.httpVersionMajor === 1 && !response.headersSent) {
        refuse(request);
      } else {
        end(request, response);
      }
    }
  }
}

/** Ends an exchange whose body has not come: over HTTP/1.1 with its connection. */
function end(request: IncomingMessage, response: ServerResponse): void {
  if (!request.complete) {
    request.destroy();
    response.destroy();
  }
}
