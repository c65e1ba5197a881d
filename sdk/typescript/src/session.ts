import { type Connected, connectLibrary, type Library } from "./connect.ts";
import { PilothouseError } from "./errors.ts";
import { type EventOptions, openEvents } from "./event-stream.ts";
import { SessionFiles } from "./files.ts";
import type {
  CaptureRequest,
  CaptureResult,
  CdpUrl,
  CreateViewLinkRequest,
  InteractRequest,
  InteractResult,
  NavigateRequest,
  NavigateResult,
  Observation,
  ObserveRequest,
  ReadRequest,
  ReadResult,
  ServiceEvent,
  Session,
  SessionState,
  ViewLink,
  WaitRequest,
  WaitResult,
} from "./gen/schema.ts";
import type { CallOptions, Transport } from "./transport.ts";
import { decodeBase64 } from "./webhooks.ts";

type Action = InteractRequest["action"];
type ActionOf<Kind extends Action["kind"]> = Extract<Action, { kind: Kind }>;

/** Options that all interactions have. */
export type InteractOptions = Omit<InteractRequest, "action">;

/** Element of a page: a CSS selector, or the `ref` of an element in an observation. */
export type Element = string | { readonly ref: string } | { readonly selector: string; readonly frame?: string[] };

/** Element or point of a page. */
export type Target = Element | { readonly x: number; readonly y: number };

/** Fields of an action other than its kind and its target. */
type Details<Kind extends Action["kind"]> = Omit<ActionOf<Kind>, "kind" | "selector" | "frame" | "ref" | "x" | "y">;

/** Options of one interaction: fields of its action, and those of all interactions. */
type Options<Kind extends Action["kind"], Given extends string = never> = Omit<Details<Kind>, Given> & InteractOptions;

/** Condition to wait for: a CSS selector of an element that becomes visible, or any condition of the API. */
export type WaitCondition = string | WaitRequest["condition"];

type Capture<Given extends string> = Omit<CaptureRequest, "kind" | Given>;

/** Types of events after which a session's stream ends. */
const lastEvents: ReadonlySet<string> = new Set(["session.completed", "session.failed"]);

/** Names of the fields that belong to the interaction and not to its action. */
const interactFields = new Set<string>(["timeout_ms", "page_id", "while_paused", "next", "observe"]);

function splitOptions(options: object): { action: object; request: object } {
  const entries = Object.entries(options);
  return {
    action: Object.fromEntries(entries.filter(([name]) => !interactFields.has(name))),
    request: Object.fromEntries(entries.filter(([name]) => interactFields.has(name))),
  };
}

function targetOf(target: Target | undefined): object {
  return typeof target === "string" ? { selector: target } : { ...target };
}

/**
 * A browser session. `await using session = await client.sessions.create()` ends it with the block; elsewhere call `end()`.
 * Navigations and interactions have an idempotency key, so that a retry does not repeat them.
 */
export class BrowserSession {
  readonly id: string;
  /** The session as it was when it was created or requested. `state()` returns the current state. */
  readonly data: Session;
  /** Files that pages can upload, and files that pages downloaded. */
  readonly files: SessionFiles;
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, data: Session) {
    this.id = data.id;
    this.data = data;
    this.#transport = transport;
    this.#path = `/v1/sessions/${encodeURIComponent(data.id)}`;
    this.files = new SessionFiles(transport, this.#path);
  }

  /** Loads a URL. Returns when the page has reached `wait_until`, by default `load`. */
  goto(url: string, request: Omit<NavigateRequest, "url"> = {}, options?: CallOptions): Promise<NavigateResult> {
    return this.#post("navigate", { url, ...request }, options);
  }

  /** Taps an element or a point. */
  tap(target: Target, request: Options<"tap"> = {}, options?: CallOptions): Promise<InteractResult> {
    return this.#act("tap", target, request, options);
  }

  /** Replaces the value of a field. */
  fill(
    target: Element,
    text: string,
    request: Options<"fill", "text"> = {},
    options?: CallOptions,
  ): Promise<InteractResult> {
    return this.#act("fill", target, { text, ...request }, options);
  }

  /** Types text key by key, into the `target` if there is one, else into the focused element. */
  type(
    text: string,
    { target, ...request }: Options<"type", "text"> & { target?: Element } = {},
    options?: CallOptions,
  ): Promise<InteractResult> {
    return this.#act("type", target, { text, ...request }, options);
  }

  /** Presses a key, such as `Enter`, in the `target` if there is one, else in the focused element. */
  press(
    key: string,
    { target, ...request }: Options<"key", "key"> & { target?: Element } = {},
    options?: CallOptions,
  ): Promise<InteractResult> {
    return this.#act("key", target, { key, ...request }, options);
  }

  /** Scrolls the page by `dx` and `dy`, or makes the `target` visible. */
  scroll(request: Options<"scroll"> & { target?: Element }, options?: CallOptions): Promise<InteractResult> {
    const { target, ...rest } = request;
    return this.#act("scroll", target, rest, options);
  }

  /** Performs any action of the API, such as `select`, `check`, `upload` or `drag`. */
  interact(request: InteractRequest, options?: CallOptions): Promise<InteractResult> {
    return this.#post("interact", request, options);
  }

  /** Waits for a condition. Throws `session-timeout` after `timeout_ms`. */
  wait(
    condition: WaitCondition,
    request: Omit<WaitRequest, "condition"> = {},
    options?: CallOptions,
  ): Promise<WaitResult> {
    const full = typeof condition === "string" ? { kind: "selector", selector: condition } : condition;
    return this.#post("wait", { condition: full, ...request }, options);
  }

  /** Returns a text of the page for an agent, with a `ref` for each element. */
  observe(request: ObserveRequest = {}, options?: CallOptions): Promise<Observation> {
    return this.#post("observe", request, options);
  }

  /** Returns the page as Markdown, a part at a time. */
  read(request: ReadRequest = {}, options?: CallOptions): Promise<ReadResult> {
    return this.#post("read", request, options);
  }

  /** Returns a picture of the page as bytes, by default of the viewport as PNG. */
  screenshot(
    request: Capture<"paper" | "landscape" | "print_background"> = {},
    options?: CallOptions,
  ): Promise<Uint8Array<ArrayBuffer>> {
    return this.#capture({ kind: "screenshot", ...request }, options);
  }

  /** Returns the page as the bytes of a PDF. */
  pdf(
    request: Pick<CaptureRequest, "paper" | "landscape" | "print_background" | "page_id" | "timeout_ms"> = {},
    options?: CallOptions,
  ): Promise<Uint8Array<ArrayBuffer>> {
    return this.#capture({ kind: "pdf", ...request }, options);
  }

  /** Returns the current state: pages, dialogs, downloads, control and others. */
  state(options?: CallOptions): Promise<SessionState> {
    return this.#transport.json("GET", `${this.#path}/state`, {}, options);
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

  /** Ends the session. Has no effect on one that has ended. */
  async end(options?: CallOptions): Promise<void> {
    try {
      await this.#transport.json("DELETE", this.#path, {}, options);
    } catch (error) {
      if (!(error instanceof PilothouseError && error.is("session-destroyed"))) throw error;
    }
  }

  /** Ends the session. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  #act(kind: string, target: Target | undefined, details: object, options?: CallOptions): Promise<InteractResult> {
    const { action, request } = splitOptions(details);
    return this.#post("interact", { action: { kind, ...targetOf(target), ...action }, ...request }, options);
  }

  async #capture(request: CaptureRequest, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>> {
    const { data } = await this.#post<CaptureResult>("capture", request, options);
    const bytes = decodeBase64(data);
    if (!bytes) throw new TypeError("expected base64 in the capture, got another text");
    return bytes;
  }

  #post<Result>(command: string, body: object, options?: CallOptions): Promise<Result> {
    return this.#transport.json("POST", `${this.#path}/${command}`, { body }, options);
  }
}
