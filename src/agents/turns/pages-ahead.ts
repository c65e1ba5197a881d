import type { Clock } from "../../platform/clock.ts";

/** Milliseconds for which an observation stays valid. */
const freshMs = 2_000;

/** Pages observed when a message arrives, for the first step of its turn if that step runs on this gateway. */
export class PagesAhead {
  readonly #clock: Clock;
  readonly #pages = new Map<string, { readonly at: number; readonly page: Promise<string | undefined> }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(turnId: string, page: Promise<string>): void {
    const at = this.#clock.monotonic();
    for (const [id, older] of this.#pages) if (at - older.at > freshMs) this.#pages.delete(id);
    this.#pages.set(turnId, { at, page: page.catch(() => undefined) });
  }

  /** Returns the page for a turn. Undefined if it was not observed here, failed to be, or is out of date. */
  async take(turnId: string): Promise<string | undefined> {
    const ahead = this.#pages.get(turnId);
    this.#pages.delete(turnId);
    return ahead && this.#clock.monotonic() - ahead.at <= freshMs ? ahead.page : undefined;
  }
}
