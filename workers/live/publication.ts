import { isIP } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { raceSignal, within } from "../../src/platform/deadline.ts";
import type { HostPort } from "../../src/platform/outgoing/address-rules.ts";
import type { EgressRelay } from "../egress/egress-relay.ts";
import type { MediaServer } from "../egress/media-server.ts";
import type { ShownTab } from "../injected/capture-script.ts";
import type { HiddenPage } from "../isolation/hidden-page.ts";
import type { PageRegistry } from "../pages/page-registry.ts";
import type { Tab } from "../pages/tab.ts";
import { type CaptureBrowser, CapturePage } from "./capture-page.ts";
import { LiveKitSignal } from "./livekit-signal.ts";

/** Milliseconds that a session stays published without viewers, so that a viewer can reload the page. */
const lingerMs = 10_000;

/** First delay in milliseconds between attempts. */
const firstRetryDelay = 500;
/** Longest delay in milliseconds between attempts. */
const maxRetryDelay = 10_000;
/** Milliseconds for the server to accept the track. */
const publishWithin = 10_000;

/** Milliseconds between polls of the page's size, which has no event. */
const pollEvery = 500;
/** Milliseconds for the page to return its size. */
const sizeWithin = 500;

/** Timeout in milliseconds for capturing another tab or size. */
const showWithin = 5_000;

export interface PublicationParts {
  readonly server: MediaServer;
  readonly relay: Pick<EgressRelay, "createStandIn">;
  readonly browser: CaptureBrowser;
  readonly pages: PageRegistry;
  /** The page of the capture extension. */
  readonly capturePage: HiddenPage;
}

/** Publishes the active page to a room of the media server while requested. */
export class Publication {
  readonly #parts: PublicationParts;
  #token = "";
  #isWanted = false;
  #isClosed = false;
  #running: AbortController | undefined;
  #linger: NodeJS.Timeout | undefined;
  #capture: CapturePage | undefined;
  #shown: ShownTab | undefined;
  /** Ends the current publication, so that a new one starts. */
  #restart: ((why: string) => void) | undefined;
  #size = { width: 0, height: 0 };
  #updating: Promise<void> | undefined;
  #isBehind = false;
  #tokenChanged = Promise.withResolvers<void>();

  constructor(parts: PublicationParts) {
    this.#parts = parts;
  }

  /** Sets the token for later attempts to publish. If an attempt is delayed, ends the delay. */
  setToken(token: string): void {
    this.#token = token;
    this.#tokenChanged.resolve();
    this.#tokenChanged = Promise.withResolvers();
  }

  /** Starts publishing, or stops after 10 s unless enabled again. */
  setEnabled(isWanted: boolean): void {
    if (this.#isClosed || isWanted === this.#isWanted) return;
    this.#isWanted = isWanted;
    clearTimeout(this.#linger);
    if (isWanted) this.#begin();
    else this.#linger = setTimeout(() => this.#running?.abort(), lingerMs).unref();
  }

  /** Switches to the active page if the page, its tab or its size has changed. */
  follow(): void {
    this.#isBehind = true;
    this.#updating ??= this.#update().finally(() => {
      this.#updating = undefined;
    });
  }

  /** Stops publishing permanently. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#linger);
    this.#running?.abort();
  }

  #begin(): void {
    if (this.#running) return;
    const running = new AbortController();
    this.#running = running;
    void this.#run(running.signal).finally(() => {
      this.#running = undefined;
      if (this.#isWanted && !this.#isClosed) this.#begin();
    });
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let wait = firstRetryDelay; !signal.aborted; wait = Math.min(wait * 2, maxRetryDelay)) {
      const isPublished = await this.#publish(signal).catch(() => false);
      if (isPublished) wait = firstRetryDelay;
      if (signal.aborted) return;
      await Promise.race([delay(wait, undefined, { signal, ref: false }), this.#tokenChanged.promise]).catch(
        () => undefined,
      );
    }
  }

  /**
   * Publishes until the connection ends or the signal aborts. Resolves with true, or rejects if publishing could not
   * start.
   */
  async #publish(signal: AbortSignal): Promise<boolean> {
    const { server, relay, browser, pages, capturePage } = this.#parts;
    await pages.active.tab.ready;
    // The timeout is needed, because capturing a tab that is closing may neither succeed nor fail.
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(publishWithin)]);
    const published = Promise.withResolvers<void>();
    const broken = Promise.withResolvers<string>();
    await using stack = new AsyncDisposableStack();
    const candidates: string[] = [];
    let isAnswered = false;
    const capture = stack.use(await CapturePage.open(browser, capturePage));
    const add = (candidate: string) => void capture.call("addCandidate", candidate).catch(() => undefined);
    const signalling = stack.use(
      await LiveKitSignal.connect(server.url, this.#token, {
        onAnswer: (sdp) => {
          void capture.call("setAnswer", sdp).then(
            () => {
              isAnswered = true;
              for (const candidate of candidates.splice(0)) add(candidate);
            },
            (error: unknown) => broken.resolve(String(error)),
          );
        },
        onCandidate: (line) => {
          const candidate = toRelayCandidate(line, (target) => {
            server.addAddress(target);
            return stack.use(relay.createStandIn(target));
          });
          if (candidate === undefined) return;
          if (isAnswered) add(candidate);
          else candidates.push(candidate);
        },
        onPublished: () => published.resolve(),
        onToken: (token) => {
          this.#token = token;
        },
      }),
    );
    if (signalling.remote) server.addAddress(signalling.remote);
    const end = Promise.race([signalling.ended, capture.ended, broken.promise]);
    const ended = end.then((why) => Promise.reject(new Error(why)));
    ended.catch(() => undefined);
    const shown = await this.#measure(pages.active.tab);
    const { sdp, trackId } = await raceSignal(Promise.race([capture.call("offer", shown), ended]), inTime);
    signalling.announce(trackId);
    await raceSignal(Promise.race([published.promise, ended]), inTime);
    signalling.offer(sdp);
    this.#capture = capture;
    this.#restart = broken.resolve;
    this.#shown = shown;
    const timer = setInterval(() => this.follow(), pollEvery);
    stack.defer(() => {
      this.#capture = undefined;
      clearInterval(timer);
    });
    await raceSignal(ended, signal).catch(() => undefined);
    return true;
  }

  /**
   * Captures the current page at its current size. If that fails, restarts the publication: the browser keeps the tab
   * marked as captured until the capturing page is closed.
   */
  async #update(): Promise<void> {
    while (this.#isBehind) {
      this.#isBehind = false;
      const { shown: page } = this.#parts.pages;
      const capture = this.#capture;
      if (!capture || !page || page.isCrashed) return;
      const wanted = await this.#measure(page.tab);
      if (capture !== this.#capture || isDeepStrictEqual(wanted, this.#shown)) continue;
      // The page is brought to the front: in a browser with windows, background tabs render nothing.
      if (wanted.targetId !== this.#shown?.targetId) page.cdp.send("Page.bringToFront").catch(() => undefined);
      this.#shown = wanted;
      const isShown = capture.call("captureTab", wanted).then(() => true);
      if (!(await within(isShown, showWithin, false))) this.#restart?.("the tab could not be captured");
    }
  }

  /** Returns the size of a page. A page that does not answer keeps the last size. */
  async #measure({ session, mainFrameId: targetId }: Tab): Promise<ShownTab> {
    const answer = await within(session.send("Page.getLayoutMetrics"), sizeWithin, undefined);
    if (answer) {
      const { clientWidth, clientHeight, scale } = answer.cssVisualViewport;
      this.#size = { width: Math.round(clientWidth * scale), height: Math.round(clientHeight * scale) };
    }
    return { targetId, ...this.#size };
  }
}

/**
 * Rewrites an ICE candidate of the LiveKit server to an address of the relay. Returns undefined unless the candidate is
 * passive TCP with an IP address, because the isolation slot cannot reach any other. (RFC 8839, section 5.1; RFC 6544,
 * section 4.5.)
 */
function toRelayCandidate(candidate: string, createStandIn: (target: HostPort) => HostPort): string | undefined {
  const fields = candidate.split(" ");
  const [, , protocol = "", , host = "", port = ""] = fields;
  if (protocol.toLowerCase() !== "tcp" || !/\btcptype passive\b/.test(candidate) || isIP(host) === 0) return undefined;
  const standIn = createStandIn({ host, port: Number(port) });
  return fields.with(4, standIn.host).with(5, String(standIn.port)).join(" ");
}
