import { PilothouseError } from "./errors.ts";
import type {
  CaptureRequest,
  InteractRequest,
  InteractResult,
  NavigateRequest,
  NavigateResult,
  Observation,
  ObserveRequest,
  ReadRequest,
  ReadResult,
  SessionState,
  WaitRequest,
  WaitResult,
} from "./gen/schema.ts";
import type { CallOptions } from "./transport.ts";

/** Commands of the API. */
export type CommandName = "navigate" | "interact" | "wait" | "observe" | "read" | "capture" | "state";

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

/** Size and largest number of the parts that `markdown()` reads. The size is the largest that the service accepts. */
const [partBytes, maxParts] = [65_536, 64];

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

/** Commands that drive a session, independent of how they are sent. */
export abstract class PageCommands {
  /** Loads a URL. Returns when the page has reached `wait_until`, by default `load`. */
  goto(url: string, request: Omit<NavigateRequest, "url"> = {}, options?: CallOptions): Promise<NavigateResult> {
    return this.send("navigate", { url, ...request }, options);
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
    return this.send("interact", request, options);
  }

  /**
   * Waits for a condition: a CSS selector, such as `"#done"`, or one of `{ kind: "selector", selector, state? }`,
   * `{ kind: "text", text }`, `{ kind: "url", pattern }`, `{ kind: "load_state", state? }`, `{ kind: "network_idle" }` and
   * `{ kind: "document_idle" }`. Throws `session-timeout` after `timeout_ms`.
   */
  wait(
    condition: WaitCondition,
    request: Omit<WaitRequest, "condition"> = {},
    options?: CallOptions,
  ): Promise<WaitResult> {
    const full = typeof condition === "string" ? { kind: "selector", selector: condition } : condition;
    return this.send("wait", { condition: full, ...request }, options);
  }

  /** Returns a text of the page for an agent, with a `ref` for each element. */
  observe(request: ObserveRequest = {}, options?: CallOptions): Promise<Observation> {
    return this.send("observe", request, options);
  }

  /** Returns a part of the page as Markdown. `next_offset` is the `offset` of the next part. `markdown()` reads all parts. */
  read(request: ReadRequest = {}, options?: CallOptions): Promise<ReadResult> {
    return this.send("read", request, options);
  }

  /**
   * Returns the whole page as Markdown, by as many requests as it has parts of 64 KiB. Throws PilothouseError for a page
   * of more than 64 parts. A page that changes meanwhile can repeat or lack text.
   */
  async markdown(request: Omit<ReadRequest, "offset" | "max_bytes"> = {}, options?: CallOptions): Promise<string> {
    const parts: string[] = [];
    for (let offset = 0; parts.length < maxParts; ) {
      const { markdown, next_offset } = await this.read({ ...request, offset, max_bytes: partBytes }, options);
      parts.push(markdown);
      if (next_offset === undefined) return parts.join("");
      offset = next_offset;
    }
    throw new PilothouseError(`expected a page of at most ${maxParts} parts of Markdown: read the parts by read()`);
  }

  /** Returns a picture of the page as bytes, by default of the viewport as PNG. */
  screenshot(
    request: Capture<"paper" | "landscape" | "print_background"> = {},
    options?: CallOptions,
  ): Promise<Uint8Array<ArrayBuffer>> {
    return this.sendCapture({ kind: "screenshot", ...request }, options);
  }

  /** Returns the page as the bytes of a PDF. */
  pdf(
    request: Pick<CaptureRequest, "paper" | "landscape" | "print_background" | "page_id" | "timeout_ms"> = {},
    options?: CallOptions,
  ): Promise<Uint8Array<ArrayBuffer>> {
    return this.sendCapture({ kind: "pdf", ...request }, options);
  }

  /** Returns the current state: pages, dialogs, downloads, control and others. */
  state(options?: CallOptions): Promise<SessionState> {
    return this.send("state", {}, options);
  }

  #act(kind: string, target: Target | undefined, details: object, options?: CallOptions): Promise<InteractResult> {
    const { action, request } = splitOptions(details);
    return this.send("interact", { action: { kind, ...targetOf(target), ...action }, ...request }, options);
  }

  /** Sends a command, and returns its result. */
  protected abstract send<Result>(command: CommandName, body: object, options?: CallOptions): Promise<Result>;

  /** Sends a capture, and returns its bytes. */
  protected abstract sendCapture(request: CaptureRequest, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>>;
}
