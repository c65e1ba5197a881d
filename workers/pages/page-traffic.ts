import type { Page, Request, Response } from "playwright-core";
import { fail } from "../../src/platform/errors.ts";
import { blockedHeader } from "../egress/refusal-page.ts";
import type { Progress } from "./progress.ts";

/** How long a page has to be without a request for its network to count as idle. */
const idleMs = 500;

/** Streams stay open for as long as the page likes: they say nothing about whether it is done. */
const endlessTypes = new Set(["eventsource", "websocket"]);

/** What is known of the last answer to a navigation of a page's main frame. */
export interface DocumentAnswer {
  readonly url: string;
  readonly status: number;
  /** The relay's own refusal, or something that looks like it. */
  readonly looksBlocked: boolean;
  /** Cloudflare says that it has put a check in the document's place. */
  readonly isMitigated: boolean;
}

/** Follows the requests of one page. */
export class PageTraffic {
  readonly #page: Page;
  readonly #inFlight = new Set<Request>();
  #quietSince = performance.now();
  /** Address of the last request for a document of the main frame, redirects included. */
  requestedUrl: string | undefined;
  /** The last answer to one. */
  answer: DocumentAnswer | undefined;

  constructor(page: Page) {
    this.#page = page;
    page.on("request", (request) => this.#onRequest(request));
    page.on("response", (response) => this.#onResponse(response));
    page.on("requestfinished", (request) => this.#onEnd(request));
    page.on("requestfailed", (request) => this.#onEnd(request));
  }

  /** Resolves when no request has been in flight for 500 ms. Throws `session-timeout` when the command's time is up. */
  async idle(progress: Progress): Promise<void> {
    for (;;) {
      const quietFor = this.#inFlight.size > 0 ? 0 : performance.now() - this.#quietSince;
      if (quietFor >= idleMs) return;
      const left = progress.remaining();
      if (left <= 1)
        throw fail("session-timeout", {}, { detail: "the network did not become idle within the timeout" });
      const pause = Math.min(Math.max(idleMs - quietFor, 10), left);
      await progress.race(new Promise((resolve) => setTimeout(resolve, pause)));
    }
  }

  /** Forgets the last document, before another is asked for. */
  forgetDocument(): void {
    this.requestedUrl = undefined;
    this.answer = undefined;
  }

  /** How many requests are in flight. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  #onRequest(request: Request): void {
    if (this.#isDocument(request)) this.requestedUrl = request.url();
    if (endlessTypes.has(request.resourceType())) return;
    this.#inFlight.add(request);
  }

  #onEnd(request: Request): void {
    if (this.#inFlight.delete(request)) this.#quietSince = performance.now();
  }

  #onResponse(response: Response): void {
    if (!this.#isDocument(response.request())) return;
    const headers = response.headers();
    const looksBlocked = headers[blockedHeader] !== undefined;
    const isMitigated = headers["cf-mitigated"] === "challenge";
    this.answer = { url: response.url(), status: response.status(), looksBlocked, isMitigated };
  }

  #isDocument(request: Request): boolean {
    if (!request.isNavigationRequest()) return false;
    try {
      return request.frame() === this.#page.mainFrame();
    } catch {
      // The first request of a popup comes before Playwright knows its frame.
      return true;
    }
  }
}
