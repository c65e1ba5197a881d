import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { SessionPage } from "../pages/session-page.ts";
import type { Tab } from "../pages/tab.ts";
import { BotCheckDetector, type DetectedCheck } from "./bot-check-detector.ts";

export interface SeenChallenge extends DetectedCheck {
  readonly detectedAt: Date;
}

export interface ChallengeListener {
  onSeen(challenge: SeenChallenge): void;
  /** Called when the page no longer shows the reported check. */
  onGone(): void;
}

/** Watches all pages of a session for bot checks. Reports one check at a time. */
export class ChallengeWatch {
  readonly #detectors = new Map<Tab, BotCheckDetector>();
  #listener: ChallengeListener | undefined;
  #shown: { readonly tab: Tab; readonly detected: DetectedCheck } | undefined;
  #challenge: SeenChallenge | undefined;

  /** The reported check. Undefined if no page shows a check. */
  get challenge(): SeenChallenge | undefined {
    return this.#challenge;
  }

  /** Sets the listener. Reports a check that is already shown. */
  listen(listener: ChallengeListener): void {
    this.#listener = listener;
    if (this.#challenge) listener.onSeen(this.#challenge);
  }

  /** Watches a tab until the tab closes. */
  watchTab(tab: Tab): void {
    this.#detectors.set(tab, new BotCheckDetector(tab, () => this.#onChange()));
    tab.listen({ onClosed: () => this.#detectors.delete(tab) });
  }

  /** Whether a page shows a check. */
  isShownBy({ tab }: SessionPage): boolean {
    return this.#detectors.get(tab)?.detected !== undefined;
  }

  /** After a navigation, waits for the result of a detection. After an interaction, schedules detections. */
  async afterCommand(kind: "navigate" | "interact" | "wait", { tab }: SessionPage): Promise<void> {
    const detector = this.#detectors.get(tab);
    if (kind === "navigate") await detector?.waitForResult();
    if (kind === "interact") detector?.scheduleChecks();
  }

  /** Stops watching without notifying the listener. */
  close(): void {
    this.#listener = undefined;
    for (const detector of this.#detectors.values()) detector.stop();
  }

  #onChange(): void {
    const shown = this.#shown;
    const detected = shown && this.#detectors.get(shown.tab)?.detected;
    // The same kind at another address of the page counts as the same check.
    if (detected && detected.kind === shown.detected.kind) return;
    if (shown) this.#reportGone();
    const next = [...this.#detectors].find(([, detector]) => detector.detected);
    if (next?.[1].detected) this.#reportSeen(next[0], next[1].detected);
  }

  #reportSeen(tab: Tab, detected: DetectedCheck): void {
    this.#shown = { tab, detected };
    this.#challenge = { ...detected, detectedAt: new Date() };
    this.#listener?.onSeen(this.#challenge);
  }

  #reportGone(): void {
    this.#shown = undefined;
    this.#challenge = undefined;
    this.#listener?.onGone();
  }
}

/** Converts a bot check to its message. */
export function challengeMessage({ kind, url, detectedAt }: SeenChallenge) {
  return { kind, url, detectedAt: timestampFromDate(detectedAt) };
}
