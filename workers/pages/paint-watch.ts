import { setTimeout } from "node:timers/promises";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { PageRegistry } from "./page-registry.ts";

/**
 * Detects whether the active page paints. Frames in other processes are not watched. The watch ends with the first
 * paint after each `rearm`, because an animated page paints 60 times a second.
 */
export class PaintWatch {
  readonly #pages: PageRegistry;
  readonly #followed = new WeakSet<CdpSession>();
  readonly #unlisten: () => void;
  /** Session for which paints are reported. */
  #armed: CdpSession | undefined;
  #shown: CdpSession | undefined;
  #committed = 0;
  #painted = Promise.withResolvers<void>();

  constructor(pages: PageRegistry) {
    this.#pages = pages;
    this.#unlisten = pages.changes.listen(() => this.#check());
    this.#check();
  }

  /**
   * Resolves once the active page has painted or replaced its document, or another page has become active, since the
   * last `rearm`.
   */
  get painted(): Promise<void> {
    return this.#painted.promise;
  }

  /**
   * Starts to watch for the next paint, but ignores paints in the first `settleMs` milliseconds: taking a picture and
   * starting the watch each make a page paint once. Call this right after a picture was taken.
   */
  async rearm(settleMs: number): Promise<void> {
    this.#painted = Promise.withResolvers();
    const session = this.#shown;
    if (!session) return;
    this.#follow(session);
    await session.send("LayerTree.enable").catch(() => undefined);
    if (settleMs > 0) await setTimeout(settleMs);
    this.#armed = session;
    if (session !== this.#shown) this.#resolvePainted();
  }

  /** Stops watching. */
  close(): void {
    this.#unlisten();
    this.#disarm();
  }

  #follow(session: CdpSession): void {
    if (this.#followed.has(session)) return;
    this.#followed.add(session);
    const onPaint = (): void => {
      if (session === this.#armed) this.#resolvePainted();
    };
    session.on("LayerTree.layerPainted", onPaint);
    session.on("LayerTree.layerTreeDidChange", onPaint);
  }

  /** Resolves `painted` if another page is active, or the active page has another document. */
  #check(): void {
    const tab = this.#pages.shown?.tab;
    const isSame = tab?.session === this.#shown && tab?.committed === this.#committed;
    if (isSame) return;
    this.#shown = tab?.session;
    this.#committed = tab?.committed ?? 0;
    this.#resolvePainted();
  }

  #resolvePainted(): void {
    this.#disarm();
    this.#painted.resolve();
  }

  #disarm(): void {
    this.#armed?.send("LayerTree.disable").catch(() => undefined);
    this.#armed = undefined;
  }
}
