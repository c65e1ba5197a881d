import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { createQueueBounds } from "./queue-bounds.ts";

/** A password to judge, and words that whoever guesses it knows. */
export interface StrengthQuestion {
  readonly password: string;
  readonly known: readonly string[];
}

/** zxcvbn's judgement: a score of 0 to 4, and what it warns of, which is empty where there is nothing. */
export interface StrengthAnswer {
  readonly score: number;
  readonly warning: string;
}

/** Milliseconds. */
const times = {
  /** For an answer: 64 characters take up to 0.5 s of a core. */
  patience: 20_000,
  /** A thread holds 55 MB, 12 of which return when it ends: it is kept no longer than some sign-ups in a row need it. */
  idle: 10_000,
};

/** Those that wait for their turn: the last of them for about 5 s. */
const mostWaiting = { all: 100, ofAddress: 20 };

/** Megabytes of a thread's heap; it fills 5. */
const resourceLimits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 };

const program = new URL("./strength-worker.ts", import.meta.url);

/**
 * Makes what judges passwords one after the other, in a thread that is started when it is needed. Throws `rate-limited` beyond
 * what may wait, in all and of a client address.
 */
export function createStrengthJudge(): (question: StrengthQuestion, clientAddress: string) => Promise<StrengthAnswer> {
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  const enter = createQueueBounds({ ...mostWaiting, what: "judged" });
  let last: Promise<unknown> = Promise.resolve();

  function end(): void {
    void worker?.terminate();
    worker = undefined;
  }

  async function ask(question: StrengthQuestion): Promise<StrengthAnswer> {
    clearTimeout(idle);
    worker ??= new Worker(program, { resourceLimits });
    worker.unref();
    try {
      worker.postMessage(question);
      const [answer] = await once(worker, "message", { signal: AbortSignal.timeout(times.patience) });
      idle = setTimeout(end, times.idle).unref();
      return answer;
    } catch (error) {
      end();
      throw error;
    }
  }

  return async (question, clientAddress) => {
    const leave = enter(clientAddress);
    const answer = last.then(() => ask(question)).finally(leave);
    last = answer.catch(() => undefined);
    return answer;
  };
}
