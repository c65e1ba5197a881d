import { type EventOptions, openEvents } from "./event-stream.ts";
import type { CreateSessionRequest, Session, SessionLogEntry, SessionStatus } from "./gen/schema.ts";
import { paginate } from "./pagination.ts";
import { BrowserSession } from "./session.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** Filter of a list of sessions. */
export interface SessionQuery {
  readonly status?: SessionStatus;
  /** Labels that a session must have, each as `name:value`. */
  readonly label?: readonly string[];
  /** Size of a page. Default: 20. */
  readonly limit?: number;
}

/** No entry type ends the stream of a log. The stream ends with its session. */
const lastEntries: ReadonlySet<string> = new Set();

/** Browser sessions of the account. */
export class Sessions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates a session, and returns it when its browser runs. */
  async create(request: CreateSessionRequest = {}, options?: CallOptions): Promise<BrowserSession> {
    const data: Session = await this.#transport.json("POST", "/v1/sessions", { body: request }, options);
    return new BrowserSession(this.#transport, data);
  }

  /** Returns a session, including one that other programs created. */
  async get(id: string, options?: CallOptions): Promise<BrowserSession> {
    const data: Session = await this.#transport.json("GET", `/v1/sessions/${encodeURIComponent(id)}`, {}, options);
    return new BrowserSession(this.#transport, data);
  }

  /** Iterates over all sessions that match a query, newest first. Requests pages as they are needed. */
  async *list(query: SessionQuery = {}, options?: CallOptions): AsyncGenerator<BrowserSession, void> {
    for await (const data of paginate<Session>(this.#transport, "/v1/sessions", { ...query }, options)) {
      yield new BrowserSession(this.#transport, data);
    }
  }

  /**
   * Iterates over the log of a session, from its first entry or after one, and then over new entries until the session
   * ends. Logs of ended sessions are kept for 7 days. Reconnects after the last received entry if the connection breaks.
   */
  async *logs(id: string, options?: EventOptions): AsyncGenerator<SessionLogEntry, void> {
    const path = `/v1/sessions/${encodeURIComponent(id)}/logs/stream`;
    yield* await openEvents<SessionLogEntry>({ transport: this.#transport, path, last: lastEntries }, options);
  }
}
