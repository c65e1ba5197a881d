import type { Page } from "playwright-core";
import type { SessionPage } from "../pages/session-page.ts";
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
  readonly #harnesses = new Map<Page, PageHarness>();
  #listener: ChallengeListener | undefined;
  #shown: { readonly page: Page; readonly sighting: Sighting } | undefined;
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

  /** Watches the tab that a page has. */
  attend({ page, cdp, targetId, traffic }: SessionPage): void {
    const harness = new PageHarness({ page, cdp, targetId, traffic, onChange: () => this.#onChange() });
    this.#harnesses.set(page, harness);
    page.on("close", () => {
      harness.stop();
      this.#harnesses.delete(page);
    });
  }

  /** Whether a page shows a check. */
  isShownBy({ page }: SessionPage): boolean {
    return this.#harnesses.get(page)?.sighting !== undefined;
  }

  /** Resolves, after a navigation, when it is known whether the page shows a check, or the time for that is up. */
  async afterCommand(kind: "navigate" | "interact" | "wait", { page }: SessionPage): Promise<void> {
    const harness = this.#harnesses.get(page);
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
    const sighting = shown && this.#harnesses.get(shown.page)?.sighting;
    // A check that has moved on to another address of its page is the same one.
    if (sighting && sighting.kind === shown.sighting.kind) return;
    if (shown) this.#tellGone();
    const next = [...this.#harnesses].find(([, harness]) => harness.sighting);
    if (next?.[1].sighting) this.#tellSeen(next[0], next[1].sighting);
  }

  #tellSeen(page: Page, sighting: Sighting): void {
    this.#shown = { page, sighting };
    this.#challenge = { ...sighting, detectedAt: new Date() };
    this.#listener?.onSeen(this.#challenge);
  }

  #tellGone(): void {
    this.#shown = undefined;
    this.#challenge = undefined;
    this.#listener?.onGone();
  }
}
