import { setTimeout } from "node:timers/promises";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { PageRegistry } from "./page-registry.ts";

/**
 * Notices whether the active page paints. Frames of other processes are not watched. The browser reports only the first
 * paint after each `rearm`, because an animated page would report 60 a second.
 */
export class PaintWatch {
  readonly #pages: PageRegistry;
  readonly #followed = new WeakSet<CdpSession>();
  readonly #unlisten: () => void;
  /** Session whose paints are reported. */
  #armed: CdpSession | undefined;
  #shown: CdpSession | undefined;
  #committed = 0;
  #painted = Promise.withResolvers<void>();

  constructor(pages: PageRegistry) {
    this.#pages = pages;
    this.#unlisten = pages.changes.listen(() => this.#check());
    this.#check();
  }

  /** Resolves once the active page has painted, or another page has become active, since the last `rearm`. */
  get painted(): Promise<void> {
    return this.#painted.promise;
  }

  /**
   * Forgets earlier paints and those of the next `settleMs` milliseconds. Call it right after a picture was taken. The
   * picture and the start of the watch each make a page paint once.
   */
  async rearm(settleMs: number): Promise<void> {
    this.#painted = Promise.withResolvers();
    const session = this.#shown;
    if (!session) return;
    this.#follow(session);
    await session.send("LayerTree.enable").catch(() => undefined);
    if (settleMs > 0) await setTimeout(settleMs);
    this.#armed = session;
    if (session !== this.#shown) this.#notice();
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
      if (session === this.#armed) this.#notice();
    };
    session.on("LayerTree.layerPainted", onPaint);
    session.on("LayerTree.layerTreeDidChange", onPaint);
  }

  /** Notices another active page, and another document of the page. */
  #check(): void {
    const tab = this.#pages.shown?.tab;
    const isSame = tab?.session === this.#shown && tab?.committed === this.#committed;
    if (isSame) return;
    this.#shown = tab?.session;
    this.#committed = tab?.committed ?? 0;
    this.#notice();
  }

  #notice(): void {
    this.#disarm();
    this.#painted.resolve();
  }

  #disarm(): void {
    this.#armed?.send("LayerTree.disable").catch(() => undefined);
    this.#armed = undefined;
  }
}
