import { within } from "../../src/platform/deadline.ts";
import type { DocumentReport } from "../injected/check-script.ts";
import { shownAddress } from "../pages/shown-text.ts";
import type { Frame, Tab } from "../pages/tab.ts";
import { isUnsolved } from "./check-frame.ts";
import { isCheckPage } from "./check-page.ts";
import { DetectionTimer } from "./detection-timer.ts";
import { reportDocument } from "./document-report.ts";
import { type ChallengeKind, type CheckFrame, checkFrameOf, isVendorAddress } from "./vendors.ts";

/**
 * Timeout of one detection in milliseconds. A detection takes 3 ms on a quiet machine, but cannot run during an endless
 * script.
 */
const checkMs = 1_000;

/** Milliseconds to wait after the load event for `#loadReport`, which never arrives after `document.open`. */
const loadReportMs = 100;

/** Milliseconds that `navigate` waits for a bot check to appear if the page has sent a request to a vendor. */
const vendorResultMs = 500;

/** Delays in milliseconds between the detections in a document that is still loading. */
const loadingMs = [300, 1_000, 3_000];

/**
 * Delays in milliseconds between the detections after a vendor request: a widget or puzzle may appear without an event.
 */
const vendorMs = [100, 400, 1_000, 3_000];

/** Milliseconds between detections while a bot check is shown. Solving a bot check causes no event. */
const shownMs = 500;

/** Milliseconds between detections while a bot check is shown and the page does not respond. */
const silentMs = 5_000;

/**
 * Milliseconds after a commit during which a bot check stays reported although the loading document does not show it.
 */
const keepDetectedMs = 5_000;

/** Maximum number of frames examined per detection. */
const maxFrames = 10;

/** A bot check that a page shows. */
export interface DetectedCheck {
  readonly kind: ChallengeKind;
  readonly url: string;
}

/** Result of one detection. Undefined if the page did not answer. */
type Detection = { readonly kind: ChallengeKind | undefined; readonly isLoading: boolean } | undefined;

/**
 * Detects bot checks on one page without changing the page. Requests and frames are classified by address. The document
 * is examined until it has loaded, after requests to a vendor, and while it shows a bot check.
 */
export class BotCheckDetector {
  /** The bot check that the page shows. */
  detected: DetectedCheck | undefined;
  readonly #tab: Tab;
  readonly #onChange: () => void;
  readonly #timer = new DetectionTimer(() => this.#detect());
  /** Frames that show a bot check if they are visible, by frame id. */
  readonly #frames = new Map<string, CheckFrame>();
  /** Counts commits and loads. Results from an earlier generation are discarded. */
  #generation = 0;
  /** Generation of the last applied result. */
  #classified = 0;
  #committedAt = 0;
  #hasVendorRequest = false;
  /** Whether a document was requested since the last navigation. False for same-document navigations. */
  #isDocumentRequested = false;
  /** Report that was requested at the commit. It arrives after the document's load event. */
  #loadReport: Promise<DocumentReport | undefined> | undefined;
  #hasLoaded = false;

  /** `onChange` is called when `detected` changes. */
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

  /**
   * Resolves when a detection in the current document has ended, or after `checkMs`. After a vendor request, also waits
   * up to `vendorResultMs` for a bot check to appear.
   */
  async waitForResult(): Promise<void> {
    const beganAt = performance.now();
    const left = (ms: number) => beganAt + ms - performance.now();
    if (this.#classified !== this.#generation) this.#timer.runNow();
    while (this.#classified !== this.#generation && left(checkMs) > 0) await this.#timer.nextEnd(left(checkMs));
    while (this.#hasVendorRequest && !this.detected && left(vendorResultMs) > 0) {
      await this.#timer.nextEnd(left(vendorResultMs));
    }
  }

  /**
   * Schedules detections after an action, because an existing check frame may become visible without a request. Does
   * nothing if the page has no check frame.
   */
  scheduleChecks(): void {
    if (this.#frames.size > 0) this.#timer.schedule(vendorMs);
  }

  /** Stops detecting and clears the result. */
  stop(): void {
    this.#timer.stop();
    this.#forget();
  }

  #onRequest(url: string, isDocument: boolean): void {
    if (isDocument) this.#isDocumentRequested = true;
    if (!isVendorAddress(url)) return;
    this.#hasVendorRequest = true;
    this.#timer.schedule(vendorMs);
  }

  #onNavigated({ id, url }: Frame, isMain: boolean): void {
    if (isMain) {
      this.#generation += 1;
      this.#committedAt = performance.now();
      this.#hasVendorRequest = false;
      this.#timer.schedule(loadingMs);
      this.#hasLoaded = false;
      this.#loadReport = this.#isDocumentRequested ? this.#report("load").catch(() => undefined) : undefined;
      this.#isDocumentRequested = false;
      return;
    }
    const check = checkFrameOf(url);
    const wasCheck = this.#frames.delete(id);
    if (check) this.#frames.set(id, check);
    if (check || wasCheck) this.#timer.schedule(vendorMs);
  }

  #onLoad(): void {
    this.#generation += 1;
    this.#hasLoaded = true;
    this.#timer.runNow();
  }

  #report(when: "now" | "load"): Promise<DocumentReport> {
    return reportDocument(this.#tab.session, this.#tab.mainFrameId, when);
  }

  /**
   * Resolves with the report from the load event. Undefined if the document has not loaded, or the report was already
   * taken or does not arrive in time.
   */
  async #takeReport(): Promise<DocumentReport | undefined> {
    const ahead = this.#hasLoaded ? this.#loadReport : undefined;
    if (ahead) this.#loadReport = undefined;
    return within(ahead ?? Promise.resolve(undefined), loadReportMs, undefined);
  }

  async #detect(): Promise<void> {
    const generation = this.#generation;
    const seen = await within(this.#classify(), checkMs, undefined);
    if (generation !== this.#generation) return;
    if (seen) {
      this.#classified = generation;
      this.#applyResult(seen);
      if (!seen.isLoading && !this.#hasVendorRequest && this.#frames.size === 0) this.#timer.schedule([]);
    }
    if (this.detected) this.#timer.runAfter(seen ? shownMs : silentMs);
  }

  async #classify(): Promise<Detection> {
    const report = (await this.#takeReport()) ?? (await this.#report("now"));
    const kind = this.#vendorOf(report) ?? (await this.#unsolvedFrame());
    return { kind: kind ?? (isCheckPage(report) ? "generic" : undefined), isLoading: report.isLoading };
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

  #applyResult({ kind, isLoading }: NonNullable<Detection>): void {
    const url = shownAddress(this.#tab.url);
    if (kind === undefined) {
      // While a page with a bot check reloads, no bot check is visible for a moment.
      const isPending = isLoading && performance.now() - this.#committedAt < keepDetectedMs;
      if (!isPending) this.#setDetected(undefined);
    } else if (this.detected?.url !== url) {
      // The first kind is kept as long as the address stays the same: Cloudflare's own page may later show a Turnstile.
      this.#setDetected({ kind, url });
    }
  }

  #setDetected(detected: DetectedCheck | undefined): void {
    if (detected === this.detected) return;
    this.detected = detected;
    this.#onChange();
  }

  #forget(): void {
    this.#frames.clear();
    this.#timer.schedule([]);
    this.#setDetected(undefined);
  }
}

function withoutFragment(url: string): string {
  const at = url.indexOf("#");
  return at < 0 ? url : url.slice(0, at);
}
