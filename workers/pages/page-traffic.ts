import { fail } from "../../src/platform/errors.ts";
import type { CdpEvents, CdpSession } from "../cdp/cdp-session.ts";
import { blockedHeader } from "../egress/refusal-page.ts";
import type { Changes } from "./changes.ts";
import type { Progress } from "./progress.ts";

/** Milliseconds without requests in flight after which the network counts as idle. */
const idleMs = 500;

/**
 * Resource type of event streams. Event streams may stay open as long as the page, so they do not count as in flight.
 */
const endlessType = "EventSource";

/** The last response to a navigation of the main frame. */
export interface DocumentAnswer {
  readonly url: string;
  readonly status: number;
  /** Whether the response has the egress relay's refusal header. Sites can fake the header. */
  readonly seemsBlocked: boolean;
  /** Whether Cloudflare replaced the document with a challenge. */
  readonly isMitigated: boolean;
}

/** Receives network activity of a page. */
export interface TrafficListener {
  /** `isDocument` marks a navigation of the main frame. */
  onRequest?(url: string, isDocument: boolean): void;
  /** Called when a server requests HTTP credentials for the document of a page or frame. */
  onLoginWanted?(url: string): void;
}

interface InFlight {
  readonly session: CdpSession;
  readonly loaderId: string;
}

/** Tracks the requests of a page and its frames, and the response to the last document request of the main frame. */
export class PageTraffic {
  readonly #mainFrameId: string;
  readonly #changes: Changes;
  readonly #inFlight = new Map<string, InFlight>();
  readonly #listeners: TrafficListener[] = [];
  #quietSince = performance.now();
  /** Address of the main frame's last document request, after redirects. */
  requestedUrl: string | undefined;
  /** Last response to a document request of the main frame, since `forgetDocument`. */
  answer: DocumentAnswer | undefined;
  /** Id of the main frame's last document request while it has no response. */
  #awaited: string | undefined;

  constructor(mainFrameId: string, changes: Changes) {
    this.#mainFrameId = mainFrameId;
    this.#changes = changes;
  }

  listen(listener: TrafficListener): void {
    this.#listeners.push(listener);
  }

  /** Tracks the requests that a session reports. */
  follow(session: CdpSession): void {
    session.on("Network.requestWillBeSent", (event) => this.#onRequest(event, session));
    session.on("Network.responseReceived", (event) => this.#onResponse(event));
    session.on("Network.loadingFinished", ({ requestId }) => this.#onEnd(requestId));
    session.on("Network.loadingFailed", ({ requestId }) => this.#onEnd(requestId));
  }

  /** Removes the requests of a session that reports no more events. */
  drop(session: CdpSession): void {
    for (const [id, request] of this.#inFlight) if (request.session === session) this.#onEnd(id);
  }

  /** Removes the requests of all other documents. The browser may not report their end after a navigation. */
  endOthers(loaderId: string): void {
    for (const [id, request] of this.#inFlight) if (request.loaderId !== loaderId) this.#onEnd(id);
  }

  /** Resolves when no request has been in flight for `idleMs`. Throws `session-timeout` if the command's time is up. */
  async idle(progress: Progress): Promise<void> {
    for (;;) {
      const quietFor = this.#inFlight.size > 0 ? 0 : performance.now() - this.#quietSince;
      if (quietFor >= idleMs) return;
      if (progress.remaining() <= 1)
        throw fail(
          "session-timeout",
          {},
          { detail: "the network did not become idle within the timeout: wait for a selector, or increase timeout_ms" },
        );
      await this.#changes.until(() => undefined, progress, Math.max(idleMs - quietFor, 10));
    }
  }

  /** Clears the last document's request and response, before the next navigation. */
  forgetDocument(): void {
    this.requestedUrl = undefined;
    this.answer = undefined;
    this.#awaited = undefined;
  }

  /** Whether the main frame's document request has no response yet. */
  get isAwaitingServer(): boolean {
    return this.#awaited !== undefined;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  #onRequest(event: CdpEvents["Network.requestWillBeSent"], session: CdpSession): void {
    const { requestId, loaderId, type, request } = event;
    const isDocument = this.#isDocument(event);
    if (isDocument) {
      this.requestedUrl = request.url;
      this.#awaited = requestId;
    }
    if (type !== endlessType) this.#inFlight.set(requestId, { session, loaderId });
    for (const listener of this.#listeners) listener.onRequest?.(request.url, isDocument);
  }

  #onResponse(event: CdpEvents["Network.responseReceived"]): void {
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
      seemsBlocked: header(blockedHeader) !== undefined,
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

type RequestOfFrame = Pick<CdpEvents["Network.requestWillBeSent"], "requestId" | "loaderId" | "frameId" | "type">;

/** Whether a request is for a document. Only a document request has the same id as its loader. */
function isNavigation({ requestId, loaderId, type }: RequestOfFrame): boolean {
  return type === "Document" && requestId === loaderId;
}

/** Returns the value of a header. Ignores case, because CDP reports names as the server wrote them. */
function findHeader(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  const found = Object.entries(headers).find(([each]) => each.toLowerCase() === name);
  return found?.[1];
}
