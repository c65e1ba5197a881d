import { createHash } from "node:crypto";
import { errorTable } from "../../src/platform/error-table.ts";
import { asFailure, fail } from "../../src/platform/errors.ts";

/** A command that may be a retry. */
export interface KeyedCommand {
  /** Empty if the command has no key. */
  readonly key: string;
  readonly method: string;
  /** Received bytes of the request. */
  readonly bytes: Uint8Array;
  /** Called if the answer is replayed. */
  onReplay(): void;
  /** Whether to only retrieve the stored answer. An unknown command is not run, and the request is not compared. */
  readonly isRecall?: boolean;
}

interface MemoryOptions {
  /** Name of the key in error messages. */
  readonly keyName: string;
  /** Maximum number of stored and pending answers. Pending answers are kept even beyond the maximum. */
  readonly capacity: number;
  /** Returns whether a failure is final and stored as the answer. */
  isFinal(thrown: unknown): boolean;
}

interface Remembered {
  readonly method: string;
  readonly fingerprint: string;
  readonly answer: Promise<unknown>;
  isSettled: boolean;
}

/** Stores the answers of recent commands by key, so that a retry is not executed twice. */
export class AnswerMemory {
  readonly #options: MemoryOptions;
  readonly #answers = new Map<string, Remembered>();

  constructor(options: MemoryOptions) {
    this.#options = options;
  }

  /** Returns whether a command with this key has started and is still stored. */
  has(key: string): boolean {
    return this.#answers.has(key);
  }

  /**
   * Runs the work, or returns the pending or stored answer to the same request with the same key. Rejects with
   * `conflict` if the key belongs to another request, and with `not-found` if there is no answer to recall.
   */
  run<Value>(command: KeyedCommand, work: () => Promise<Value>): Promise<Value> {
    const { key, method, bytes, onReplay, isRecall = false } = command;
    const { keyName, isFinal } = this.#options;
    if (key === "") return work();
    const fingerprint = isRecall ? "" : createHash("sha256").update(bytes).digest("base64");
    const known = this.#answers.get(key);
    if (known) {
      const isOther = known.method !== method || (!isRecall && known.fingerprint !== fingerprint);
      if (isOther) return Promise.reject(otherRequest(keyName));
      onReplay();
      // The cast is safe, because each method has one answer type.
      return known.answer as Promise<Value>;
    }
    if (isRecall) return Promise.reject(notStored(keyName));
    const remembered = { method, fingerprint, answer: work(), isSettled: false };
    this.#answers.set(key, remembered);
    const settle = () => {
      remembered.isSettled = true;
      this.#forgetOldest();
    };
    remembered.answer.then(settle, (thrown: unknown) => {
      if (!isFinal(thrown) && this.#answers.get(key) === remembered) this.#answers.delete(key);
      settle();
    });
    return remembered.answer;
  }

  #forgetOldest(): void {
    for (const [key, { isSettled }] of this.#answers) {
      if (this.#answers.size <= this.#options.capacity) return;
      if (isSettled) this.#answers.delete(key);
    }
  }
}

/** Creates the store of answers by Idempotency-Key. Retryable failures are not stored, so that a retry runs. */
export function idempotencyMemory(): AnswerMemory {
  return new AnswerMemory({
    keyName: "Idempotency-Key",
    capacity: 100,
    isFinal: (thrown) => !isRetryable(thrown),
  });
}

/** Creates the store of answers by turn step. Failures are final, because a retry is a new step. */
export function stepMemory(): AnswerMemory {
  return new AnswerMemory({ keyName: "step", capacity: 32, isFinal: () => true });
}

function isRetryable(thrown: unknown): boolean {
  const { slug, extensions } = asFailure(thrown);
  // A command that may have had effects must not run again.
  if ("in_doubt" in extensions) return false;
  return slug === "conflict" || errorTable[slug].status >= 500;
}

function otherRequest(keyName: string): Error {
  return fail("conflict", {}, { detail: `another request has been sent with this ${keyName}` });
}

function notStored(keyName: string): Error {
  return fail("not-found", {}, { detail: `the session has no stored answer for this ${keyName}` });
}
