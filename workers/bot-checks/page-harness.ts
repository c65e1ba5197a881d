import { within } from "../../src/platform/deadline.ts";
import { shownAddress } from "../pages/shown-text.ts";
import type { Frame, Tab } from "../pages/tab.ts";
import { isUnsolved } from "./check-frame.ts";
import { type DocumentReport, reportDocument } from "./document-report.ts";
import { LookTimer } from "./look-timer.ts";
import { isAboutBeingHuman } from "./purpose.ts";
import { type ChallengeKind, type CheckFrame, checkFrameOf, isVendorAddress } from "./vendors.ts";

/** How long one look at a page may take: 3 ms on a quiet machine, for ever behind an endless script. */
const lookMs = 1_000;

/** How long after a document has loaded its report may come that was asked for ahead: `document.open` makes it never come. */
const aheadMs = 100;

/** How long a navigation waits for a vendor's script, when one was asked for, to show what it makes of the page. */
const vendorVerdictMs = 500;

/** A document that loads is looked at after these times, until it can be judged. */
const loadingMs = [300, 1_000, 3_000];

/** After a vendor was asked for something the page changes without an event: a widget grows, a hidden puzzle is shown. */
const vendorMs = [100, 400, 1_000, 3_000];

/** How often a check that is shown is looked at: that it has been passed raises no event. */
const shownMs = 500;

/** The same while the page does not answer, so that what is asked of it does not pile up. */
const silentMs = 5_000;

/** How long a document may load before it counts that it shows no check. */
const patienceMs = 5_000;

/** How many frames of one page are looked at. */
const maxFrames = 10;

/** A bot check on a page. */
export interface Sighting {
  readonly kind: ChallengeKind;
  /** Address of the page. */
  readonly url: string;
}

/** What a look has seen; nothing when the page did not answer. */
type Look = { readonly kind: ChallengeKind | undefined; readonly isLoading: boolean } | undefined;

/**
 * Recognises bot checks on one page without changing it. Requests and frames are judged by the addresses that the browser
 * announces; the document is looked at once when it has loaded, and again only after a vendor was asked for something.
 */
export class PageHarness {
  /** The check that the page shows. */
  sighting: Sighting | undefined;
  readonly #tab: Tab;
  readonly #onChange: () => void;
  readonly #timer = new LookTimer(() => this.#look());
  /** Frames that are checks when they are shown, by their names. */
  readonly #frames = new Map<string, CheckFrame>();
  /** Counts commits and loads: what was seen before the last one says nothing about the page as it is. */
  #generation = 0;
  #judged = 0;
  #committedAt = 0;
  #isVendorNear = false;
  /** A document was asked for: what a script navigates within one costs no look ahead. */
  #isDocumentComing = false;
  /** What is reported of the document when it has loaded; of use to the look that its load asks for. */
  #atLoad: Promise<DocumentReport | undefined> | undefined;
  #hasLoaded = false;

  /** `onChange` hears when a check appears, becomes another, or goes. */
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

  /** Resolves when it is known whether the page shows a check, or the time for that is up. */
  async verdict(): Promise<void> {
    const beganAt = performance.now();
    const left = (ms: number) => beganAt + ms - performance.now();
    if (this.#judged !== this.#generation) this.#timer.now();
    while (this.#judged !== this.#generation && left(lookMs) > 0) await this.#timer.nextEnd(left(lookMs));
    while (this.#isVendorNear && !this.sighting && left(vendorVerdictMs) > 0) {
      await this.#timer.nextEnd(left(vendorVerdictMs));
    }
  }

  /** The page was acted on: a frame that is there already may be shown now, without a request. */
  touch(): void {
    if (this.#frames.size > 0) this.#timer.follow(vendorMs);
  }

  /** Looks no more. */
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

  /** Takes the report that was asked for ahead, if it is of the document as it is. */
  async #takeReport(): Promise<DocumentReport | undefined> {
    const ahead = this.#hasLoaded ? this.#atLoad : undefined;
    if (ahead) this.#atLoad = undefined;
    return within(ahead ?? Promise.resolve(undefined), aheadMs, undefined);
  }

  async #look(): Promise<void> {
    const generation = this.#generation;
    const seen = await within(this.#judge(), lookMs, undefined);
    if (generation !== this.#generation) return;
    if (seen) {
      this.#judged = generation;
      this.#conclude(seen);
      if (!seen.isLoading && !this.#isVendorNear && this.#frames.size === 0) this.#timer.follow([]);
    }
    if (this.sighting) this.#timer.after(seen ? shownMs : silentMs);
  }

  async #judge(): Promise<Look> {
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
      // A frame may go while it is looked at.
      if (frame && (await isUnsolved(this.#tab, frame, check).catch(() => false))) return check.kind;
    }
    return undefined;
  }

  #conclude({ kind, isLoading }: NonNullable<Look>): void {
    const url = shownAddress(this.#tab.url);
    if (kind === undefined) {
      // A check that reloads itself shows nothing for a moment.
      const isPending = isLoading && performance.now() - this.#committedAt < patienceMs;
      if (!isPending) this.#see(undefined);
    } else if (this.sighting?.url !== url) {
      // The first name stands while the page does: Cloudflare's own page comes to show a Turnstile, say.
      this.#see({ kind, url });
    }
  }

  #see(sighting: Sighting | undefined): void {
    if (sighting === this.sighting) return;
    this.sighting = sighting;
    this.#onChange();
  }

  /** The page shows nothing any more. */
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
