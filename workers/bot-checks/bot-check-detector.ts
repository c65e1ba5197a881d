import { within } from "../../src/platform/deadline.ts";
import type { DocumentReport } from "../injected/check-script.ts";
import { shownAddress } from "../pages/shown-text.ts";
import type { Frame, Tab } from "../pages/tab.ts";
import { isUnsolved } from "./check-frame.ts";
import { DetectionTimer } from "./detection-timer.ts";
import { reportDocument } from "./document-report.ts";
import { isAboutBeingHuman } from "./purpose.ts";
import { type ChallengeKind, type CheckFrame, checkFrameOf, isVendorAddress } from "./vendors.ts";

/**
 * Timeout of one check in milliseconds. A check takes 3 ms on a quiet machine, but cannot run during an endless script.
 */
const checkMs = 1_000;

/** Milliseconds to wait after the load for a report requested ahead. After `document.open` no report arrives. */
const aheadMs = 100;

/** Milliseconds that a navigation waits for a requested vendor script to show its check. */
const vendorVerdictMs = 500;

/** Delays in milliseconds of the checks of a loading document, until it can be classified. */
const loadingMs = [300, 1_000, 3_000];

/** Delays after a vendor request. The page changes without events: a widget grows, or a hidden puzzle appears. */
const vendorMs = [100, 400, 1_000, 3_000];

/** Interval of checks while a bot check is shown, because solving raises no event. */
const shownMs = 500;

/** Interval of checks while the page does not answer, so that requests do not accumulate. */
const silentMs = 5_000;

/** Milliseconds during which a loading document without a check keeps the current result. */
const patienceMs = 5_000;

/** Maximum number of frames examined per page. */
const maxFrames = 10;

export interface Sighting {
  readonly kind: ChallengeKind;
  readonly url: string;
}

/** Result of one check. Undefined if the page did not answer. */
type Detection = { readonly kind: ChallengeKind | undefined; readonly isLoading: boolean } | undefined;

/**
 * Detects bot checks on one page without changing the page. Requests and frames are classified by address. The document
 * is examined once when loaded, and again only after a request to a vendor.
 */
export class BotCheckDetector {
  /** The bot check that the page shows. */
  sighting: Sighting | undefined;
  readonly #tab: Tab;
  readonly #onChange: () => void;
  readonly #timer = new DetectionTimer(() => this.#detect());
  /** Frames that are checks if visible, by frame id. */
  readonly #frames = new Map<string, CheckFrame>();
  /** Counts commits and loads. Results from an earlier generation are discarded. */
  #generation = 0;
  #judged = 0;
  #committedAt = 0;
  #isVendorNear = false;
  /** Whether a document was requested. Same-document navigations need no report ahead. */
  #isDocumentComing = false;
  /** Report requested ahead for the document's load event. */
  #atLoad: Promise<DocumentReport | undefined> | undefined;
  #hasLoaded = false;

  /** `onChange` is called when a check appears, changes or disappears. */
  constructor(tab: Tab, onChange: () => void) {
    this.#tab = tab;
    this.#onChange = onChange;
    tab.traffic.listen({ onRequest: (url, isDocument) => this.#onRequest(url, isDocument) });
    tab.listen({
      onNavigated: (frame, isMain) => this.#onNavigated(frame, isMain),
      onFrameGone: (id) => this.#frames.delete(id),
      onLoaded: () => this.#onLoad(),
      onCrashed: () => this.#forget(),
      onClosed: () => this.stop(),
    });
  }

  /** Resolves once the page was checked, or after a timeout. */
  async verdict(): Promise<void> {
    const beganAt = performance.now();
    const left = (ms: number) => beganAt + ms - performance.now();
    if (this.#judged !== this.#generation) this.#timer.now();
    while (this.#judged !== this.#generation && left(checkMs) > 0) await this.#timer.nextEnd(left(checkMs));
    while (this.#isVendorNear && !this.sighting && left(vendorVerdictMs) > 0) {
      await this.#timer.nextEnd(left(vendorVerdictMs));
    }
  }

  /** Schedules checks after an action, because an existing frame may become visible without a request. */
  touch(): void {
    if (this.#frames.size > 0) this.#timer.follow(vendorMs);
  }

  /** Stops checking and clears the result. */
  stop(): void {
    this.#timer.stop();
    this.#forget();
  }

  #onRequest(url: string, isDocument: boolean): void {
    if (isDocument) this.#isDocumentComing = true;
    if (!isVendorAddress(url)) return;
    this.#isVendorNear = true;
    this.#timer.follow(vendorMs);
  }

  #onNavigated({ id, url }: Frame, isMain: boolean): void {
    if (isMain) {
      this.#generation += 1;
      this.#committedAt = performance.now();
      this.#isVendorNear = false;
      this.#timer.follow(loadingMs);
      this.#hasLoaded = false;
      this.#atLoad = this.#isDocumentComing ? this.#report("load").catch(() => undefined) : undefined;
      this.#isDocumentComing = false;
      return;
    }
    const check = checkFrameOf(url);
    const wasCheck = this.#frames.delete(id);
    if (check) this.#frames.set(id, check);
    if (check || wasCheck) this.#timer.follow(vendorMs);
  }

  #onLoad(): void {
    this.#generation += 1;
    this.#hasLoaded = true;
    this.#timer.now();
  }

  #report(when: "now" | "load"): Promise<DocumentReport> {
    return reportDocument(this.#tab.session, this.#tab.mainFrameId, when);
  }

  /** Resolves with the report requested ahead, if the document has loaded. */
  async #takeReport(): Promise<DocumentReport | undefined> {
    const ahead = this.#hasLoaded ? this.#atLoad : undefined;
    if (ahead) this.#atLoad = undefined;
    return within(ahead ?? Promise.resolve(undefined), aheadMs, undefined);
  }

  async #detect(): Promise<void> {
    const generation = this.#generation;
    const seen = await within(this.#judge(), checkMs, undefined);
    if (generation !== this.#generation) return;
    if (seen) {
      this.#judged = generation;
      this.#conclude(seen);
      if (!seen.isLoading && !this.#isVendorNear && this.#frames.size === 0) this.#timer.follow([]);
    }
    if (this.sighting) this.#timer.after(seen ? shownMs : silentMs);
  }

  async #judge(): Promise<Detection> {
    const report = (await this.#takeReport()) ?? (await this.#report("now"));
    const kind = this.#vendorOf(report) ?? (await this.#unsolvedFrame());
    return { kind: kind ?? (isAboutBeingHuman(report) ? "generic" : undefined), isLoading: report.isLoading };
  }

  #vendorOf({ isCloudflare, isPerimeterX }: DocumentReport): ChallengeKind | undefined {
    const { traffic, url } = this.#tab;
    const isMitigated = traffic.answer?.isMitigated === true && traffic.answer.url === withoutFragment(url);
    if (isCloudflare || isMitigated) return "cloudflare";
    return isPerimeterX ? "perimeterx" : undefined;
  }

  async #unsolvedFrame(): Promise<ChallengeKind | undefined> {
    for (const [id, check] of [...this.#frames].slice(0, maxFrames)) {
      const frame = this.#tab.frame(id);
      // A frame may be removed while it is examined.
      if (frame && (await isUnsolved(this.#tab, frame, check).catch(() => false))) return check.kind;
    }
    return undefined;
  }

  #conclude({ kind, isLoading }: NonNullable<Detection>): void {
    const url = shownAddress(this.#tab.url);
    if (kind === undefined) {
      // While the page of a check reloads, no check is visible for a moment.
      const isPending = isLoading && performance.now() - this.#committedAt < patienceMs;
      if (!isPending) this.#see(undefined);
    } else if (this.sighting?.url !== url) {
      // The first kind is kept per page: Cloudflare's own page may later show a Turnstile.
      this.#see({ kind, url });
    }
  }

  #see(sighting: Sighting | undefined): void {
    if (sighting === this.sighting) return;
    this.sighting = sighting;
    this.#onChange();
  }

  #forget(): void {
    this.#frames.clear();
    this.#timer.follow([]);
    this.#see(undefined);
  }
}

function withoutFragment(url: string): string {
  const at = url.indexOf("#");
  return at < 0 ? url : url.slice(0, at);
}
