/** Tells when a session has had no command for its idle time. A command that runs is activity until its end. */
export class IdleClock {
  readonly #idleMs: number;
  readonly #onIdle: () => void;
  #active = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(idleMs: number, onIdle: () => void) {
    this.#idleMs = idleMs;
    this.#onIdle = onIdle;
    this.#arm();
  }

  /** Counts a command from now until the returned object is disposed of. */
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

  /** Counts something that takes no time. */
  touch(): void {
    if (this.#active === 0) this.#timer?.refresh();
  }

  /** Tells nothing any more. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #arm(): void {
    if (!this.#stopped) this.#timer = setTimeout(this.#onIdle, this.#idleMs);
  }
}
