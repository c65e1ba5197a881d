import { decodeBytes } from "./base64.ts";
import { type CommandName, PageCommands } from "./commands.ts";
import { type Connected, connectLibrary, type Library } from "./connect.ts";
import { Drive } from "./drive.ts";
import { PilothouseResponseError } from "./errors.ts";
import { type EventOptions, openEvents } from "./event-stream.ts";
import { SessionFiles } from "./files.ts";
import type {
  CaptureRequest,
  CaptureResult,
  CdpUrl,
  CreateViewLinkRequest,
  ServiceEvent,
  Session,
  ViewLink,
} from "./gen/schema.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** Types of events after which a session's stream ends. */
const lastEvents: ReadonlySet<string> = new Set(["session.completed", "session.failed"]);

/**
 * A browser session. `await using session = await client.sessions.create()` ends it with the block; elsewhere call `end()`.
 * Navigations and interactions have an idempotency key, so that a retry does not repeat them.
 */
export class BrowserSession extends PageCommands {
  readonly id: string;
  /** The session as it was when it was created or requested. `state()` returns the current state. */
  readonly data: Session;
  /** Files that pages can upload, and files that pages downloaded. */
  readonly files: SessionFiles;
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, data: Session) {
    super();
    this.id = data.id;
    this.data = data;
    this.#transport = transport;
    this.#path = `/v1/sessions/${encodeURIComponent(data.id)}`;
    this.files = new SessionFiles(transport, this.#path);
  }

  /**
   * Iterates over the events of the session, from now on, until it ends. Reconnects after the last received event if the
   * connection breaks.
   */
  async *events(options?: EventOptions): AsyncGenerator<ServiceEvent, void> {
    const source = { transport: this.#transport, path: `${this.#path}/events`, last: lastEvents };
    yield* await openEvents(source, options);
  }

  /** Creates a link at which a person watches the session, and with `control` also controls it. */
  async liveUrl(request: CreateViewLinkRequest = {}, options?: CallOptions): Promise<string> {
    const { url = "" } = await this.#post<ViewLink>("view-links", request, options);
    return url;
  }

  /** Creates a URL for clients of the Chrome DevTools Protocol. It contains a token of this session. */
  async cdpUrl(options?: CallOptions): Promise<string> {
    const { url } = await this.#post<CdpUrl>("cdp-url", {}, options);
    return url;
  }

  /**
   * Connects a library that is installed in the same project, and returns its browser. Closing the browser ends the
   * connection, and the session continues.
   */
  async connect<Name extends Library>(library: Name, options?: CallOptions): Promise<Connected<Name>> {
    return connectLibrary(library, await this.cdpUrl(options));
  }

  /**
   * Opens a WebSocket that sends the commands of this session without a request each, in their order. It does not
   * reconnect: if it breaks, open another.
   */
  drive(options: Pick<CallOptions, "signal"> = {}): Promise<Drive> {
    return Drive.open(this.#transport, this.#path, options);
  }

  /** Ends the session. Has no effect on one that has ended. */
  async end(options?: CallOptions): Promise<void> {
    try {
      await this.#transport.json("DELETE", this.#path, {}, options);
    } catch (error) {
      if (!(error instanceof PilothouseResponseError && error.is("session-destroyed"))) throw error;
    }
  }

  /** Ends the session. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  protected send<Result>(command: CommandName, body: object, options?: CallOptions): Promise<Result> {
    if (command === "state") return this.#transport.json("GET", `${this.#path}/state`, {}, options);
    return this.#post(command, body, options);
  }

  protected async sendCapture(request: CaptureRequest, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>> {
    const { data } = await this.#post<CaptureResult>("capture", request, options);
    return decodeBytes(data);
  }

  #post<Result>(command: string, body: object, options?: CallOptions): Promise<Result> {
    return this.#transport.json("POST", `${this.#path}/${command}`, { body }, options);
  }
}
