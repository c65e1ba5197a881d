import { createHash } from "node:crypto";
import { errorTable } from "../../src/platform/error-table.ts";
import { asFailure, fail } from "../../src/platform/errors.ts";

/** A command that may have been sent before. */
export interface KeyedCommand {
  /** Empty when there is none. */
  readonly key: string;
  readonly method: string;
  /** The request as it came. */
  readonly bytes: Uint8Array;
  /** Hears that the answer is an earlier one's. */
  onReplay(): void;
  /** Only asks for the answer: a command that is not known is not run, whatever its request is. */
  readonly isRecall?: boolean;
}

/** What a memory keeps. */
interface MemoryOptions {
  /** What a command names itself by, in plain words. */
  readonly called: string;
  /** How many answers it keeps; those that are still awaited are kept besides. */
  readonly capacity: number;
  /** Whether a failure is the command's answer for good. */
  keeps(thrown: unknown): boolean;
}

interface Remembered {
  readonly method: string;
  readonly fingerprint: string;
  readonly answer: Promise<unknown>;
  isSettled: boolean;
}

/** Remembers the answers of the last commands that had a name, so that a retried tap is not a second tap. */
export class AnswerMemory {
  readonly #options: MemoryOptions;
  readonly #answers = new Map<string, Remembered>();

  constructor(options: MemoryOptions) {
    this.#options = options;
  }

  /** Whether a command of this name was begun, and is not forgotten. */
  knows(key: string): boolean {
    return this.#answers.has(key);
  }

  /** Runs the work, or gives the answer of the same request under the same key: that which runs, if it still does. */
  run<Value>(command: KeyedCommand, work: () => Promise<Value>): Promise<Value> {
    const { key, method, bytes, onReplay, isRecall = false } = command;
    const { called, keeps } = this.#options;
    if (key === "") return work();
    const fingerprint = isRecall ? "" : createHash("sha256").update(bytes).digest("base64");
    const known = this.#answers.get(key);
    if (known) {
      const isOther = known.method !== method || (!isRecall && known.fingerprint !== fingerprint);
      if (isOther) return Promise.reject(otherRequest(called));
      onReplay();
      // A method has one type of answer.
      return known.answer as Promise<Value>;
    }
    if (isRecall) return Promise.reject(notKnown(called));
    const remembered = { method, fingerprint, answer: work(), isSettled: false };
    this.#answers.set(key, remembered);
    const settle = () => {
      remembered.isSettled = true;
      this.#forgetOldest();
    };
    remembered.answer.then(settle, (thrown: unknown) => {
      if (!keeps(thrown) && this.#answers.get(key) === remembered) this.#answers.delete(key);
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

/** What remembers commands by their Idempotency-Key. A failure that a retry may cure is forgotten, and the retry runs. */
export function idempotencyMemory(): AnswerMemory {
  return new AnswerMemory({
    called: "Idempotency-Key",
    capacity: 100,
    keeps: (thrown) => !isWorthAnotherTry(thrown),
  });
}

/** What remembers the steps of turns. A step that has failed is done, too: what is tried again is another step. */
export function stepMemory(): AnswerMemory {
  return new AnswerMemory({ called: "step", capacity: 32, keeps: () => true });
}

function isWorthAnotherTry(thrown: unknown): boolean {
  const { slug, extensions } = asFailure(thrown);
  // What may have been done is not done again.
  if ("in_doubt" in extensions) return false;
  return slug === "conflict" || errorTable[slug].status >= 500;
}

function otherRequest(called: string): Error {
  return fail("conflict", {}, { detail: `another request has been sent with this ${called}` });
}

function notKnown(called: string): Error {
  return fail("not-found", {}, { detail: `the session does not know this ${called}` });
}
