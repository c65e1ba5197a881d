/** Calls `onIdle` when no activity has been in progress for the idle timeout. */
export class IdleClock {
  #idleMs: number;
  readonly #onIdle: () => void;
  #active = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(idleMs: number, onIdle: () => void) {
    this.#idleMs = idleMs;
    this.#onIdle = onIdle;
    this.#arm();
  }

  /** Whether no activity is in progress. */
  get isIdle(): boolean {
    return this.#active === 0;
  }

  /** Marks the session active until the returned object is disposed of. */
  activity(): Disposable {
    this.#active += 1;
    clearTimeout(this.#timer);
    return {
      [Symbol.dispose]: () => {
        this.#active -= 1;
        if (this.#active === 0) this.#arm();
      },
    };
  }

  /** Restarts the idle timeout. */
  touch(): void {
    if (this.#active === 0) this.#timer?.refresh();
  }

  /** Changes the idle timeout, and restarts it. */
  set(idleMs: number): void {
    this.#idleMs = idleMs;
    clearTimeout(this.#timer);
    if (this.#active === 0) this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #arm(): void {
    if (!this.#stopped) this.#timer = setTimeout(this.#onIdle, this.#idleMs);
  }
}
