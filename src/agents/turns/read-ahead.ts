import type { Clock } from "../../platform/clock.ts";

/** Milliseconds for which a value stays valid. */
const freshMs = 2_000;

/** Values read when a message arrives, for the first step of its turn if that step runs on this gateway. */
export class ReadAhead<Value> {
  readonly #clock: Clock;
  readonly #values = new Map<string, { readonly at: number; readonly value: Promise<Value | undefined> }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(turnId: string, value: Promise<Value>): void {
    const at = this.#clock.monotonic();
    for (const [id, older] of this.#values) if (at - older.at > freshMs) this.#values.delete(id);
    this.#values.set(turnId, { at, value: value.catch(() => undefined) });
  }

  /**
   * Returns the value for a turn; undefined if this gateway has read no value, the read failed, or the value is
   * outdated.
   */
  async take(turnId: string): Promise<Value | undefined> {
    const ahead = this.#values.get(turnId);
    this.#values.delete(turnId);
    return ahead && this.#clock.monotonic() - ahead.at <= freshMs ? ahead.value : undefined;
  }

  /** Drops the value for a turn that has changed. */
  drop(turnId: string): void {
    this.#values.delete(turnId);
  }
}
