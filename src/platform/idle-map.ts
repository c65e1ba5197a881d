import { type Clock, systemClock } from "./clock.ts";

interface IdleMapOptions<Value> {
  readonly clock?: Clock;
  readonly onForget?: (value: Value) => void;
}

/** Map that removes entries not accessed for `idleFor` milliseconds, at the next `set`. */
export class IdleMap<Key, Value> {
  /** Ordered by last access. */
  readonly #entries = new Map<Key, { readonly value: Value; readonly usedAt: number }>();
  readonly #idleFor: number;
  readonly #clock: Clock;
  readonly #onForget: (value: Value) => void;

  constructor(idleFor: number, { clock = systemClock, onForget = () => undefined }: IdleMapOptions<Value> = {}) {
    this.#idleFor = idleFor;
    this.#clock = clock;
    this.#onForget = onForget;
  }

  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry) this.#use(key, entry.value);
    return entry?.value;
  }

  set(key: Key, value: Value): void {
    this.#use(key, value);
    this.#forgetIdle();
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  /** Removes all entries and returns their values. */
  clear(): Value[] {
    const values = [...this.#entries.values()].map(({ value }) => value);
    this.#entries.clear();
    return values;
  }

  #use(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, { value, usedAt: this.#clock.monotonic() });
  }

  #forgetIdle(): void {
    const idleSince = this.#clock.monotonic() - this.#idleFor;
    for (const [key, { value, usedAt }] of this.#entries) {
      if (usedAt > idleSince) return;
      this.#entries.delete(key);
      this.#onForget(value);
    }
  }
}
