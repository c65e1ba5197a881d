import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { createQueueBounds } from "./queue-bounds.ts";

/** A password to estimate, and words that an attacker knows. */
export interface StrengthQuestion {
  readonly password: string;
  readonly known: readonly string[];
}

/** zxcvbn's result: a score of 0 to 4, and a warning or an empty string. */
export interface StrengthAnswer {
  readonly score: number;
  readonly warning: string;
}

/**
 * Estimates the strength of a password. Throws `rate-limited` if the queue is full, in total or for the client address.
 */
export type StrengthEstimator = (question: StrengthQuestion, clientAddress: string) => Promise<StrengthAnswer>;

/** Milliseconds. */
const times = {
  /** Timeout of an estimate: 64 characters take up to 0.5 s of a core. */
  timeout: 20_000,
  /** Until an unused thread ends. Consecutive sign-ups share a thread; ending the thread frees 12 of its 55 MB. */
  idle: 10_000,
};

/** Maximum waiting calls, in total and per client address. The last of 100 calls waits about 5 s. */
const maxWaiting = { all: 100, ofAddress: 20 };

/** Maximum megabytes of a thread's heap; an estimate uses 5. */
const resourceLimits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 };

const program = new URL("./strength-worker.ts", import.meta.url);

/** Creates an estimator, which runs one estimate at a time in a thread started on demand. */
export function createStrengthEstimator(): StrengthEstimator {
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  const enter = createQueueBounds({ ...maxWaiting, what: "password checks" });
  let last: Promise<unknown> = Promise.resolve();

  function end(): void {
    void worker?.terminate();
    worker = undefined;
  }

  async function check(question: StrengthQuestion): Promise<StrengthAnswer> {
    clearTimeout(idle);
    worker ??= new Worker(program, { resourceLimits });
    worker.unref();
    try {
      worker.postMessage(question);
      const [answer] = await once(worker, "message", { signal: AbortSignal.timeout(times.timeout) });
      idle = setTimeout(end, times.idle).unref();
      return answer;
    } catch (error) {
      end();
      throw error;
    }
  }

  return async (question, clientAddress) => {
    const leave = enter(clientAddress);
    const answer = last.then(() => check(question)).finally(leave);
    last = answer.catch(() => undefined);
    return answer;
  };
}
