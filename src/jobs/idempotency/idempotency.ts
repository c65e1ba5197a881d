import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Attempt } from "../../kernel/call.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import type { Clock } from "../../platform/clock.ts";
import { Failure, fail } from "../../platform/errors.ts";
import { type Ids, repeatIds } from "../../platform/ids.ts";
import type { Log } from "../../platform/log.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { createRepeatedJob } from "../../platform/repeated-job.ts";
import type { Sealer } from "../../platform/secrets/secrets-sealer.ts";
import { makeAttempt, type WatchedAttempt } from "./attempt.ts";
import { createOutcomes, isLasting } from "./outcome.ts";
import {
  abandonRequest,
  beat,
  type Claim,
  claimRequest,
  deleteOld,
  findRequest,
  type KeyedRequest,
  keepOutcome,
  releaseRequest,
} from "./store.ts";

/** Milliseconds. */
const times = {
  /** A request that is sent again waits this long for the first one's answer, where nothing else is said. */
  wait: 30_000,
  /** Between two looks for that answer: from the first to the last. */
  look: { first: 50, last: 1_000 },
  /** Between two signs of life of what runs; one that gives none for 10 s is taken over (store.ts). */
  beat: 1_000,
};

/** Runs a method: within one attempt, whose `commit` it calls once. */
type Work = (attempt: Attempt) => Promise<Message>;

/** A request with an Idempotency-Key, and what its method answers. */
export interface RepeatableRequest extends KeyedRequest {
  readonly output: DescMessage;
  /** Hears that the answer, or the failure, is that of an earlier request. */
  onReplay(): void;
}

/**
 * Has requests with an Idempotency-Key change things once, whatever becomes of the gateways that run them: the answer is
 * committed with the change, and given again for 24 hours.
 */
export interface Idempotency {
  /** Runs a request without a key. */
  once(work: Work): Promise<Message>;
  /** Runs a request, or gives the answer of an earlier one, waiting for it where it still runs. */
  repeatable(request: RepeatableRequest, work: Work): Promise<Message>;
  /** Deletes what has been kept for 24 hours. */
  sweep(): Promise<void>;
  start(): void;
  stop(): Promise<void>;
}

interface IdempotencyParts {
  readonly db: Database;
  readonly ids: Ids;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
  /** Milliseconds that a request waits for an earlier one's answer. */
  readonly wait?: number;
}

/** The attempt was taken over while its gateway was silent. */
class Superseded extends Error {
  override readonly name = "Superseded";
}

const conflict = (why: string): Failure =>
  fail("conflict", {}, { detail: `the request that came first with this Idempotency-Key ${why}` });

/** Runs the work, and sees that it has committed its change by its attempt: an answer that is not kept with it can be lost. */
async function perform(attempt: WatchedAttempt, work: Work): Promise<Message> {
  const answer = await work(attempt);
  if (!attempt.isCommitted) throw new Error(`${answer.$typeName} was answered to a POST without call.commit`);
  return answer;
}

/** Makes the kept answers of a gateway. */
export function createIdempotency(parts: IdempotencyParts): Idempotency {
  const { db, ids, sealer, log, wait = times.wait } = parts;
  const outcomes = createOutcomes(sealer);
  const running = new Set<Claim>();
  const complaint = "requests that run cannot be kept from being taken over at the moment";
  const heart = createRepeatedJob({ run: beatAll, every: times.beat, complaint }, parts);

  async function beatAll(): Promise<void> {
    if (running.size > 0) await beat(db, [...running]);
  }

  /** One attempt at a request. Throws `Superseded` instead of committing what another gateway has taken over. */
  async function attemptAt(request: RepeatableRequest, claim: Claim, work: Work): Promise<Message> {
    const write = (outcome: Message | Failure) => outcomes.write(request, request.output, outcome);
    const made = { ids: repeatIds(claim.seed), resumes: claim.resumes };
    const attempt = makeAttempt(db, made, async (tx, outcome) => {
      const lasts = !(outcome instanceof Failure) || isLasting(outcome);
      const isMine = await (lasts ? keepOutcome(tx, claim, write(outcome)) : releaseRequest(tx, claim));
      if (!isMine) throw new Superseded();
    });
    running.add(claim);
    try {
      return await perform(attempt, work);
    } catch (thrown) {
      if (!attempt.isCommitted && !(thrown instanceof Superseded)) {
        const ending = isLasting(thrown) ? keepOutcome(db, claim, write(thrown)) : abandonRequest(db, claim);
        // Where even that fails, the next attempt begins when the silence has lasted for long enough.
        await ending.catch((error: unknown) => log.debug({ err: error }, "a failure could not be kept"));
      }
      throw thrown;
    } finally {
      running.delete(claim);
    }
  }

  return {
    once: (work) => perform(makeAttempt(db, { ids, resumes: false }), work),
    async repeatable(request, work) {
      const { accountId, caller, key, hash, output } = request;
      const deadline = performance.now() + wait;
      for (let look = times.look.first; ; look = Math.min(2 * look, times.look.last)) {
        const claim = await claimRequest(db, request, ids.next("run").slice("run_".length));
        if (claim) {
          try {
            return await attemptAt(request, claim, work);
          } catch (thrown) {
            if (!(thrown instanceof Superseded)) throw thrown;
          }
        }
        const found = await findRequest(db, accountId, key);
        if (found && !found.request_hash.equals(hash)) throw conflict("had another method or body");
        if (found && found.caller !== caller) throw conflict("was another caller's");
        const outcome = found && outcomes.read(request, output, found);
        if (outcome) {
          request.onReplay();
          if (outcome instanceof Failure) throw outcome;
          return outcome;
        }
        if (performance.now() >= deadline) throw conflict("is still running");
        await sleep(look);
      }
    },
    sweep: () => deleteOld(db),
    start: () => heart.start(),
    stop: () => heart.stop(),
  };
}
