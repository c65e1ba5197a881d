import { hash, verify } from "@node-rs/argon2";
import { Counter, type Registry } from "prom-client";
import { failFields } from "../../platform/errors.ts";
import { randomText } from "../../platform/ids.ts";
import { createQueueBounds } from "./queue-bounds.ts";
import { createStrengthEstimator, type StrengthEstimator } from "./strength.ts";

/**
 * argon2id with 19 MiB, two passes, parallelism 1: the minimum of OWASP's password storage cheat sheet. A hash takes 7
 * ms.
 */
const owaspCost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

export interface PasswordOptions {
  /** Cost of a hash. `memoryCost` is in KiB. Default: OWASP's minimum. */
  readonly cost?: typeof owaspCost;
  /** Default: a new estimator. */
  readonly estimate?: StrengthEstimator;
}

/** Maximum concurrent hashes per process; together they take at most 76 MiB. */
const atOnce = 4;
/** Maximum waiting calls, in total and per client address. The last of 250 calls waits about one second. */
const maxWaiting = { all: 250, ofAddress: 50 };

/** Minimum zxcvbn score. At 3, more than 10^8 guesses are needed to find the password of a stolen hash. */
const minScore = 3;

/** Maximum characters of a password to estimate. The time of an estimate grows faster than their number. */
const maxEstimated = 64;

/** Texts for zxcvbn's warnings. Other warnings have no text. */
const warnings: Readonly<Record<string, string>> = {
  topTen: "it is one of the most common passwords",
  topHundred: "it is one of the most common passwords",
  common: "it is a common password",
  similarToCommon: "it is similar to a common password",
  wordByItself: "it is a single word",
  sequences: "it is a sequence of characters",
  straightRow: "its keys are neighbours",
  keyPattern: "its keys are neighbours",
  dates: "it is a date",
  simpleRepeat: "it is a repetition",
  extendedRepeat: "it is a repetition",
  recentYears: "it is a year",
  userInputs: "it is similar to your e-mail address",
};

/**
 * Hashes passwords with limited concurrency. Throws `rate-limited` if the queue is full, in total or for the client
 * address.
 */
export interface Passwords {
  /** Throws `validation-failed` if the password is easy to guess, also for an attacker who knows the e-mail address. */
  assertStrong(password: string, email: string, clientAddress: string): Promise<void>;
  hash(password: string, clientAddress: string): Promise<string>;
  /** Compares a password with a hash. Without a hash, takes as long and returns false. */
  verify(hash: string | null | undefined, password: string, clientAddress: string): Promise<boolean>;
}

export function createPasswords(
  registry: Registry,
  { cost = owaspCost, estimate = createStrengthEstimator() }: PasswordOptions = {},
): Passwords {
  const hashes = new Counter({
    name: "pilothouse_password_hashes_total",
    help: "Password hashes computed, for storage or comparison.",
    registers: [registry],
  });
  const waiting: (() => void)[] = [];
  const enter = createQueueBounds({ ...maxWaiting, what: "password hashes" });
  let running = 0;
  let decoy: Promise<string> | undefined;

  async function withSlot<T>(clientAddress: string, run: () => Promise<T>): Promise<T> {
    if (running < atOnce) running += 1;
    else {
      const leave = enter(clientAddress);
      await new Promise<void>((resolve) => waiting.push(resolve));
      leave();
    }
    hashes.inc();
    try {
      return await run();
    } finally {
      // Passes the slot to the next waiter.
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  }

  /** Normalises to NFKC, because keyboards encode the same character differently (NIST SP 800-63B, 3.1.1.2). */
  const canonical = (password: string): string => password.normalize("NFKC");

  return {
    async assertStrong(password, email, clientAddress) {
      const known = [email, ...email.split(/[^a-z0-9]+/), "pilothouse"];
      const question = { password: canonical(password).slice(0, maxEstimated), known };
      const { score, warning } = await estimate(question, clientAddress);
      if (score >= minScore) return;
      const reason = warnings[warning] === undefined ? "" : `, since ${warnings[warning]}`;
      const detail = `is easily guessed${reason}: use four or more uncommon words, or a password manager`;
      throw failFields("validation-failed", { password: detail });
    },
    hash: (password, clientAddress) => withSlot(clientAddress, () => hash(canonical(password), cost)),
    async verify(stored, password, clientAddress) {
      decoy ??= hash(randomText(40), cost).catch((error: unknown) => {
        decoy = undefined;
        throw error;
      });
      const decoyHash = await decoy;
      const isRight = await withSlot(clientAddress, () => verify(stored ?? decoyHash, canonical(password)));
      return isRight && typeof stored === "string";
    },
  };
}
