import { createHash } from "node:crypto";
import { errorTable } from "../../src/platform/error-table.ts";
import { asFailure, fail } from "../../src/platform/errors.ts";

/** How many keys a session remembers. */
const capacity = 100;

/** A command that may have been sent before. */
export interface KeyedCommand {
  /** Empty when there is none. */
  readonly key: string;
  readonly method: string;
  /** Writes the request in binary. */
  encode(): Uint8Array;
  /** Hears that the answer is an earlier one's. */
  onReplay(): void;
}

interface Remembered {
  readonly fingerprint: string;
  readonly answer: Promise<unknown>;
}

/**
 * Remembers the answers of the last commands that carried an Idempotency-Key, so that a retried tap is not a second tap.
 * A failure that a retry may cure (5xx, or a conflict) is forgotten, and the retry runs.
 */
export class IdempotencyMemory {
  readonly #answers = new Map<string, Remembered>();

  /** Runs the work, or gives the answer of the same request under the same key: that which runs, if it still does. */
  run<Value>({ key, method, encode, onReplay }: KeyedCommand, work: () => Promise<Value>): Promise<Value> {
    if (key === "") return work();
    const fingerprint = `${method} ${createHash("sha256").update(encode()).digest("base64")}`;
    const known = this.#answers.get(key);
    if (known) {
      if (known.fingerprint !== fingerprint) return Promise.reject(otherRequest());
      onReplay();
      // The fingerprint names the method, and a method has one type of answer.
      return known.answer as Promise<Value>;
    }
    const answer = work();
    this.#remember(key, { fingerprint, answer });
    answer.catch((thrown: unknown) => {
      if (isWorthAnotherTry(thrown) && this.#answers.get(key)?.answer === answer) this.#answers.delete(key);
    });
    return answer;
  }

  #remember(key: string, remembered: Remembered): void {
    this.#answers.set(key, remembered);
    if (this.#answers.size <= capacity) return;
    const [oldest] = this.#answers.keys();
    if (oldest !== undefined) this.#answers.delete(oldest);
  }
}

function isWorthAnotherTry(thrown: unknown): boolean {
  const { slug, extensions } = asFailure(thrown);
  // What may have been done is not done again.
  if ("in_doubt" in extensions) return false;
  return slug === "conflict" || errorTable[slug].status >= 500;
}

function otherRequest(): Error {
  return fail("conflict", {}, { detail: "another request has been sent with this Idempotency-Key" });
}
