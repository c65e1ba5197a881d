import { isIP } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { raceSignal, within } from "../../src/platform/deadline.ts";
import type { Target } from "../../src/platform/outgoing/address-rules.ts";
import type { MediaServer } from "../egress/media-server.ts";
import type { Relay } from "../egress/relay.ts";
import type { ShownTab } from "../injected/capture-script.ts";
import type { HiddenPage } from "../isolation/hidden-page.ts";
import type { PageBook } from "../pages/page-book.ts";
import type { Tab } from "../pages/tab.ts";
import { type CaptureBrowser, CapturePage } from "./capture-page.ts";
import { LiveKitSignal } from "./livekit-signal.ts";

/** Milliseconds for which a session is published that nobody watches: who reloads its page finds it. */
const lingerMs = 10_000;

/** Milliseconds: before another try after one that has failed, the first time and at the most; and until the track is taken. */
const againFirst = 500;
const againAtMost = 10_000;
const publishWithin = 10_000;

/** Milliseconds between two looks at the size of the page, which nothing tells; and that a page may take to say it. */
const lookEvery = 500;
const sizeWithin = 500;

/** Milliseconds that a tab may take to be captured. */
const showWithin = 5_000;

export interface PublicationParts {
  readonly server: MediaServer;
  readonly relay: Pick<Relay, "standFor">;
  readonly browser: CaptureBrowser;
  readonly pages: PageBook;
  /** The page of our extension. */
  readonly capturePage: HiddenPage;
}

/** Shows the active page in a room of the media server, while that is wanted. Nothing runs before and after. */
export class Publication {
  readonly #parts: PublicationParts;
  #token = "";
  #isWanted = false;
  #isClosed = false;
  #running: AbortController | undefined;
  #linger: NodeJS.Timeout | undefined;
  #capture: CapturePage | undefined;
  #shown: ShownTab | undefined;
  /** Ends what is published, so that it begins anew. */
  #giveUp: ((why: string) => void) | undefined;
  #size = { width: 0, height: 0 };
  #looking: Promise<void> | undefined;
  #isBehind = false;
  #tokenChanged = Promise.withResolvers<void>();

  constructor(parts: PublicationParts) {
    this.#parts = parts;
  }

  /** Takes a token to publish with. */
  learn(token: string): void {
    this.#token = token;
    this.#tokenChanged.resolve();
    this.#tokenChanged = Promise.withResolvers();
  }

  /** Begins, or ends some time after it is not wanted any more. */
  turn(isWanted: boolean): void {
    if (this.#isClosed || isWanted === this.#isWanted) return;
    this.#isWanted = isWanted;
    clearTimeout(this.#linger);
    if (isWanted) this.#begin();
    else this.#linger = setTimeout(() => this.#running?.abort(), lingerMs).unref();
  }

  /** Goes on with the active page, if it has become another, or has got another renderer. */
  follow(): void {
    this.#isBehind = true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
  }

  /** Ends it for good. */
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
    for (let wait = againFirst; !signal.aborted; wait = Math.min(wait * 2, againAtMost)) {
      const isPublished = await this.#publish(signal).catch(() => false);
      if (isPublished) wait = againFirst;
      if (signal.aborted) return;
      await Promise.race([delay(wait, undefined, { signal, ref: false }), this.#tokenChanged.promise]).catch(
        () => undefined,
      );
    }
  }

  /** Publishes until that ends, and says whether it had begun. */
  async #publish(signal: AbortSignal): Promise<boolean> {
    const { server, relay, browser, pages, capturePage } = this.#parts;
    await pages.active.tab.ready;
    // A capture of a tab that is just going away may neither begin nor fail.
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(publishWithin)]);
    const published = Promise.withResolvers<void>();
    const broken = Promise.withResolvers<string>();
    await using stack = new AsyncDisposableStack();
    const candidates: string[] = [];
    let isAnswered = false;
    const capture = stack.use(await CapturePage.open(browser, capturePage));
    const add = (candidate: string) => void capture.ask("addCandidate", candidate).catch(() => undefined);
    const signalling = stack.use(
      await LiveKitSignal.connect(server.url, this.#token, {
        onAnswer: (sdp) => {
          void capture.ask("answer", sdp).then(
            () => {
              isAnswered = true;
              for (const candidate of candidates.splice(0)) add(candidate);
            },
            (error: unknown) => broken.resolve(String(error)),
          );
        },
        onCandidate: (line) => {
          const candidate = behind(line, (target) => {
            server.learn(target);
            return stack.use(relay.standFor(target));
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
    if (signalling.remote) server.learn(signalling.remote);
    const end = Promise.race([signalling.ended, capture.ended, broken.promise]);
    const ended = end.then((why) => Promise.reject(new Error(why)));
    ended.catch(() => undefined);
    const shown = await this.#measure(pages.active.tab);
    const { sdp, trackId } = await raceSignal(Promise.race([capture.ask("offer", shown), ended]), inTime);
    signalling.announce(trackId);
    await raceSignal(Promise.race([published.promise, ended]), inTime);
    signalling.offer(sdp);
    this.#capture = capture;
    this.#giveUp = broken.resolve;
    this.#shown = shown;
    const timer = setInterval(() => this.follow(), lookEvery);
    stack.defer(() => {
      this.#capture = undefined;
      clearInterval(timer);
    });
    await raceSignal(ended, signal).catch(() => undefined);
    return true;
  }

  /**
   * Goes on with what is shown by now, as it is by now. Where that fails all begins anew: a browser in which a capture has
   * failed takes the tab for captured until the page that asked has gone.
   */
  async #look(): Promise<void> {
    while (this.#isBehind) {
      this.#isBehind = false;
      const { shown: page } = this.#parts.pages;
      const capture = this.#capture;
      if (!capture || !page || page.isCrashed) return;
      const wanted = await this.#measure(page.tab);
      if (capture !== this.#capture || isDeepStrictEqual(wanted, this.#shown)) continue;
      // A tab behind another paints nothing in a browser that has windows.
      if (wanted.targetId !== this.#shown?.targetId) page.cdp.send("Page.bringToFront").catch(() => undefined);
      this.#shown = wanted;
      const isShown = capture.ask("show", wanted).then(() => true);
      if (!(await within(isShown, showWithin, false))) this.#giveUp?.("the tab could not be captured");
    }
  }

  /** A page that does not answer is as large as the last one that did. */
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
 * The candidate of a server that may be reached from a slot: over TCP, which goes by the relay, and at an address that
 * stands for its own. Undefined for others. The fields are those of RFC 8839, section 5.1, and RFC 6544, section 4.5.
 */
function behind(candidate: string, standFor: (target: Target) => Target): string | undefined {
  const fields = candidate.split(" ");
  const [, , protocol = "", , host = "", port = ""] = fields;
  if (protocol.toLowerCase() !== "tcp" || !/\btcptype passive\b/.test(candidate) || isIP(host) === 0) return undefined;
  const standIn = standFor({ host, port: Number(port) });
  return fields.with(4, standIn.host).with(5, String(standIn.port)).join(" ");
}
