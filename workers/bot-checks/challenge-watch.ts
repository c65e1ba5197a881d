import type { SessionPage } from "../pages/session-page.ts";
import type { Tab } from "../pages/tab.ts";
import { PageHarness, type Sighting } from "./page-harness.ts";

/** A bot check that a session shows. */
export interface SeenChallenge extends Sighting {
  readonly detectedAt: Date;
}

/** What becomes known of a session's bot checks. */
export interface ChallengeListener {
  onSeen(challenge: SeenChallenge): void;
  /** The check that was seen last is on no page any more. */
  onGone(): void;
}

/** Watches all pages of a session for bot checks, and tells of one at a time. */
export class ChallengeWatch {
  readonly #harnesses = new Map<Tab, PageHarness>();
  #listener: ChallengeListener | undefined;
  #shown: { readonly tab: Tab; readonly sighting: Sighting } | undefined;
  #challenge: SeenChallenge | undefined;

  /** The check that was told of and is not gone. */
  get challenge(): SeenChallenge | undefined {
    return this.#challenge;
  }

  /** Tells this listener, from now on, of what is seen. */
  listen(listener: ChallengeListener): void {
    this.#listener = listener;
    if (this.#challenge) listener.onSeen(this.#challenge);
  }

  /** Watches a tab. */
  attend(tab: Tab): void {
    this.#harnesses.set(tab, new PageHarness(tab, () => this.#onChange()));
    tab.listen({ onClosed: () => this.#harnesses.delete(tab) });
  }

  /** Whether a page shows a check. */
  isShownBy({ tab }: SessionPage): boolean {
    return this.#harnesses.get(tab)?.sighting !== undefined;
  }

  /** Resolves, after a navigation, when it is known whether the page shows a check, or the time for that is up. */
  async afterCommand(kind: "navigate" | "interact" | "wait", { tab }: SessionPage): Promise<void> {
    const harness = this.#harnesses.get(tab);
    if (kind === "navigate") await harness?.verdict();
    if (kind === "interact") harness?.touch();
  }

  /** Watches no more, and tells nothing of it. */
  close(): void {
    this.#listener = undefined;
    for (const harness of this.#harnesses.values()) harness.stop();
  }

  #onChange(): void {
    const shown = this.#shown;
    const sighting = shown && this.#harnesses.get(shown.tab)?.sighting;
    // A check that has moved on to another address of its page is the same one.
    if (sighting && sighting.kind === shown.sighting.kind) return;
    if (shown) this.#tellGone();
    const next = [...this.#harnesses].find(([, harness]) => harness.sighting);
    if (next?.[1].sighting) this.#tellSeen(next[0], next[1].sighting);
  }

  #tellSeen(tab: Tab, sighting: Sighting): void {
    this.#shown = { tab, sighting };
    this.#challenge = { ...sighting, detectedAt: new Date() };
    this.#listener?.onSeen(this.#challenge);
  }

  #tellGone(): void {
    this.#shown = undefined;
    this.#challenge = undefined;
    this.#listener?.onGone();
  }
}
