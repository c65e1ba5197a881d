import { fail } from "../../src/platform/errors.ts";
import type { CdpSession, WireEvents } from "../cdp/cdp-session.ts";
import { blockedHeader } from "../egress/refusal-page.ts";
import type { Changes } from "./changes.ts";
import type { Progress } from "./progress.ts";

/** How long a page has to be without a request for its network to count as idle. */
const idleMs = 500;

/** Streams stay open for as long as the page likes: they say nothing about whether it is done. */
const endlessType = "EventSource";

/** What is known of the last answer to a navigation of a page's main frame. */
export interface DocumentAnswer {
  readonly url: string;
  readonly status: number;
  /** The relay's own refusal, or something that looks like it. */
  readonly looksBlocked: boolean;
  /** Cloudflare says that it has put a check in the document's place. */
  readonly isMitigated: boolean;
}

/** Hears what a page asks for. */
export interface TrafficListener {
  /** `isDocument`: for the main frame. */
  onRequest?(url: string, isDocument: boolean): void;
  /** A server asks for a name and a password before it gives a document. */
  onLoginWanted?(url: string): void;
}

interface InFlight {
  readonly session: CdpSession;
  readonly loaderId: string;
}

/** Follows the requests of one page. */
export class PageTraffic {
  readonly #mainFrameId: string;
  readonly #changes: Changes;
  readonly #inFlight = new Map<string, InFlight>();
  readonly #listeners: TrafficListener[] = [];
  #quietSince = performance.now();
  /** Address of the last request for a document of the main frame, redirects included. */
  requestedUrl: string | undefined;
  /** The last answer to one. */
  answer: DocumentAnswer | undefined;
  /** The last request for one, while no server has answered it. */
  #awaited: string | undefined;

  constructor(mainFrameId: string, changes: Changes) {
    this.#mainFrameId = mainFrameId;
    this.#changes = changes;
  }

  listen(listener: TrafficListener): void {
    this.#listeners.push(listener);
  }

  /** Follows what a session tells. */
  follow(session: CdpSession): void {
    session.on("Network.requestWillBeSent", (event) => this.#onRequest(event, session));
    session.on("Network.responseReceived", (event) => this.#onResponse(event));
    session.on("Network.loadingFinished", ({ requestId }) => this.#onEnd(requestId));
    session.on("Network.loadingFailed", ({ requestId }) => this.#onEnd(requestId));
  }

  /** Nobody tells any more how the requests of a session end. */
  drop(session: CdpSession): void {
    for (const [id, request] of this.#inFlight) if (request.session === session) this.#onEnd(id);
  }

  /** Requests of the document before end with it, whether or not each end is told. */
  forgetOthers(loaderId: string): void {
    for (const [id, request] of this.#inFlight) if (request.loaderId !== loaderId) this.#onEnd(id);
  }

  /** Resolves when no request has been in flight for 500 ms. Throws `session-timeout` when the command's time is up. */
  async idle(progress: Progress): Promise<void> {
    for (;;) {
      const quietFor = this.#inFlight.size > 0 ? 0 : performance.now() - this.#quietSince;
      if (quietFor >= idleMs) return;
      if (progress.remaining() <= 1)
        throw fail("session-timeout", {}, { detail: "the network did not become idle within the timeout" });
      await this.#changes.until(() => undefined, progress, Math.max(idleMs - quietFor, 10));
    }
  }

  /** Forgets the last document, before another is asked for. */
  forgetDocument(): void {
    this.requestedUrl = undefined;
    this.answer = undefined;
    this.#awaited = undefined;
  }

  /** A document of the main frame was asked for, and no server has answered yet. */
  get isAwaitingServer(): boolean {
    return this.#awaited !== undefined;
  }

  /** How many requests are in flight. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  #onRequest(event: WireEvents["Network.requestWillBeSent"], session: CdpSession): void {
    const { requestId, loaderId, type, request } = event;
    const isDocument = this.#isDocument(event);
    if (isDocument) {
      this.requestedUrl = request.url;
      this.#awaited = requestId;
    }
    if (type !== endlessType) this.#inFlight.set(requestId, { session, loaderId });
    for (const listener of this.#listeners) listener.onRequest?.(request.url, isDocument);
  }

  #onResponse(event: WireEvents["Network.responseReceived"]): void {
    const { response } = event;
    const header = (name: string) => findHeader(response.headers, name);
    if (isNavigation(event) && response.status === 401 && header("www-authenticate") !== undefined) {
      for (const listener of this.#listeners) listener.onLoginWanted?.(response.url);
    }
    if (!this.#isDocument(event)) return;
    this.#awaited = undefined;
    this.answer = {
      url: response.url,
      status: response.status,
      looksBlocked: header(blockedHeader) !== undefined,
      isMitigated: header("cf-mitigated") === "challenge",
    };
  }

  #onEnd(requestId: string): void {
    if (requestId === this.#awaited) this.#awaited = undefined;
    if (this.#inFlight.delete(requestId) && this.#inFlight.size === 0) this.#quietSince = performance.now();
  }

  #isDocument(event: RequestOfFrame): boolean {
    return isNavigation(event) && event.frameId === this.#mainFrameId;
  }
}

type RequestOfFrame = Pick<WireEvents["Network.requestWillBeSent"], "requestId" | "loaderId" | "frameId" | "type">;

/** Whether a request is for a document: it goes by the name of its loader. */
function isNavigation({ requestId, loaderId, type }: RequestOfFrame): boolean {
  return type === "Document" && requestId === loaderId;
}

/** Names of headers are in the case in which a server has sent them. */
function findHeader(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  const found = Object.entries(headers).find(([each]) => each.toLowerCase() === name);
  return found?.[1];
}
