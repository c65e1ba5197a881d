import { Agents } from "./agents.ts";
import { decodeBytes } from "./base64.ts";
import { type EventOptions, openEvents } from "./event-stream.ts";
import type { FetchRequest, FetchResult, ServiceEvent } from "./gen/schema.ts";
import { paginate } from "./pagination.ts";
import { Sessions } from "./sessions.ts";
import { type CallOptions, type ClientOptions, type Query, type RequestContent, Transport } from "./transport.ts";

/** Fetched page, with its screenshot and PDF as bytes. */
export interface FetchedPage extends Omit<FetchResult, "screenshot" | "pdf"> {
  readonly screenshot?: Uint8Array<ArrayBuffer>;
  readonly pdf?: Uint8Array<ArrayBuffer>;
}

/** No event ends the account's stream. */
const lastEvents: ReadonlySet<string> = new Set();

/** Client of a Pilothouse service. Has no `close`, because it holds no connection. */
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
   * Loads a URL in a browser of its own, and returns the page in each of `formats`, by default as Markdown. Retried
   * only if the service has refused the call, with `rate-limited` or `capacity-unavailable`.
   */
  async fetch(url: string, request: Omit<FetchRequest, "url"> = {}, options?: CallOptions): Promise<FetchedPage> {
    const body = { url, ...request };
    const { screenshot, pdf, ...page } = await this.request<FetchResult>("POST", "/v1/fetch", { body }, options);
    return {
      ...page,
      ...(screenshot !== undefined && { screenshot: decodeBytes(screenshot) }),
      ...(pdf !== undefined && { pdf: decodeBytes(pdf) }),
    };
  }

  /**
   * Iterates over the events of the account that webhooks can receive, from now on or after an event. Reconnects after the
   * last received event if the connection breaks.
   */
  async *events(options?: EventOptions): AsyncGenerator<ServiceEvent, void> {
    yield* await openEvents({ transport: this.#transport, path: "/v1/events/stream", last: lastEvents }, options);
  }

  /** Iterates over all items of any list, such as `client.list("/v1/profiles")`. Requests pages as they are needed. */
  list<Item = unknown>(path: `/v1/${string}`, query: Query = {}, options?: CallOptions): AsyncGenerator<Item, void> {
    return paginate(this.#transport, path, query, options);
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
