import { Agents } from "./agents.ts";
import { Sessions } from "./sessions.ts";
import { type CallOptions, type ClientOptions, type RequestContent, Transport } from "./transport.ts";

/** Client of a Pilothouse service. Needs no end, as it holds no connection. */
export class Pilothouse {
  readonly sessions: Sessions;
  readonly agents: Agents;
  readonly #transport: Transport;

  constructor(options: ClientOptions = {}) {
    this.#transport = new Transport(options);
    this.sessions = new Sessions(this.#transport);
    this.agents = new Agents(this.#transport);
  }

  /**
   * Sends a request to any endpoint, such as `client.request("GET", "/v1/profiles")`, and returns its JSON. A POST is
   * retried only with an `idempotencyKey`, or if the service is known to accept one.
   */
  request<Result = unknown>(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: `/v1/${string}`,
    content?: RequestContent,
    options?: CallOptions,
  ): Promise<Result> {
    return this.#transport.json(method, path, content, options);
  }

  /** Sends a request to any endpoint, and returns the response with its headers and unread body. */
  raw(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: `/v1/${string}`,
    content?: RequestContent,
    options?: CallOptions,
  ): Promise<Response> {
    return this.#transport.raw(method, path, content, options);
  }
}
