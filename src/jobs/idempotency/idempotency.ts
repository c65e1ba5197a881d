import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { MethodAttempt } from "../../kernel/call.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import { Failure, fail } from "../../platform/errors.ts";
import { repeatIds } from "../../platform/ids.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { createRepeatedJob } from "../../platform/repeated-job.ts";
import { createOutcomes, isPermanentFailure } from "./outcome.ts";
import { makeAttempt, type WatchedAttempt } from "./request-attempt.ts";
import {
  abandonRequest,
  claimRequest,
  deleteOldRequests,
  findRequest,
  type KeyedRequest,
  type RequestClaim,
  recordHeartbeats,
  releaseRequest,
  storeOutcome,
} from "./store.ts";

/** Milliseconds. */
const times = {
  /** Default time that a retry waits for the first request's response. */
  wait: 30_000,
  /** Polling interval for the response. Doubled after each poll, up to `last`. */
  poll: { first: 50, last: 1_000 },
  /** Heartbeat interval of running requests. A request without a heartbeat for 10 s may be taken over (store.ts). */
  beat: 1_000,
};

/** Runs a method within an attempt, and calls `commit` once. */
type Work = (attempt: MethodAttempt) => Promise<Message>;

/** A request with an Idempotency-Key, and the message type of its response. */
export interface RepeatableRequest extends KeyedRequest {
  readonly output: DescMessage;
  /** Called if the response or failure is that of an earlier request. */
  onReplay(): void;
}

/**
 * Applies requests with an Idempotency-Key once, even if gateways crash. The response commits with the change and is
 * replayed for 24 hours.
 */
export interface Idempotency {
  /** Runs a request without a key. */
  once(work: Work): Promise<Message>;
  /**
   * Runs a request, or waits for the outcome of an earlier request with the same key. Throws the failure of the earlier
   * request, or `conflict` if that request differs, has another caller or is still running after `wait` milliseconds.
   */
  repeatable(request: RepeatableRequest, work: Work): Promise<Message>;
  /** Deletes records older than 24 hours. */
  sweep(): Promise<void>;
  start(): void;
  stop(): Promise<void>;
}

interface IdempotencyParts extends Pick<PlatformParts, "db" | "ids" | "sealer" | "clock" | "log"> {
  /** Milliseconds that a request waits for an earlier request's response. */
  readonly wait?: number;
}

/** Thrown if another attempt took over the request. */
class Superseded extends Error {
  override readonly name = "Superseded";
}

const conflict = (why: string): Failure =>
  fail("conflict", {}, { detail: `the first request with this Idempotency-Key ${why}` });

/** Runs the method. Throws if the method has not committed through its attempt, because its response could be lost. */
async function perform(attempt: WatchedAttempt, work: Work): Promise<Message> {
  const answer = await work(attempt);
  if (!attempt.isCommitted) throw new Error(`expected call.commit before a POST returns ${answer.$typeName}`);
  return answer;
}

export function createIdempotency(parts: IdempotencyParts): Idempotency {
  const { db, ids, sealer, log, wait = times.wait } = parts;
  const outcomes = createOutcomes(sealer);
  const running = new Set<RequestClaim>();
  const failureMessage = "failed to send heartbeats of running requests";
  const heartbeats = createRepeatedJob({ run: sendHeartbeats, every: times.beat, failureMessage }, parts);

  async function sendHeartbeats(): Promise<void> {
    if (running.size > 0) await recordHeartbeats(db, [...running]);
  }

  /** Makes one attempt at a request. Throws `Superseded` instead of committing if another attempt has taken over. */
  async function attemptAt(request: RepeatableRequest, claim: RequestClaim, work: Work): Promise<Message> {
    const write = (outcome: Message | Failure) => outcomes.write(request, request.output, outcome);
    const made = { ids: repeatIds(claim.seed), resumes: claim.resumes };
    const attempt = makeAttempt(db, made, async (tx, outcome) => {
      const isStored = !(outcome instanceof Failure) || isPermanentFailure(outcome);
      const isCurrent = await (isStored ? storeOutcome(tx, claim, write(outcome)) : releaseRequest(tx, claim));
      if (!isCurrent) throw new Superseded();
    });
    running.add(claim);
    try {
      return await perform(attempt, work);
    } catch (thrown) {
      if (!attempt.isCommitted && !(thrown instanceof Superseded)) {
        const ending = isPermanentFailure(thrown) ? storeOutcome(db, claim, write(thrown)) : abandonRequest(db, claim);
        // If storing fails too, a retry takes over when the heartbeat is 10 s old.
        await ending.catch((error: unknown) => log.debug({ err: error }, "failed to store the failure of a request"));
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
      for (let poll = times.poll.first; ; poll = Math.min(2 * poll, times.poll.last)) {
        const claim = await claimRequest(db, request, ids.next("run").slice("run_".length));
        if (claim) {
          try {
            return await attemptAt(request, claim, work);
          } catch (thrown) {
            if (!(thrown instanceof Superseded)) throw thrown;
          }
        }
        const found = await findRequest(db, accountId, key);
        if (found && !found.request_hash.equals(hash))
          throw conflict("had a different method, path or body: use a new key");
        if (found && found.caller !== caller) throw conflict("was sent by another caller: use a new key");
        const outcome = found && outcomes.read(request, output, found);
        if (outcome) {
          request.onReplay();
          if (outcome instanceof Failure) throw outcome;
          return outcome;
        }
        if (performance.now() >= deadline) throw conflict("is still running: repeat the request later");
        await sleep(poll);
      }
    },
    sweep: () => deleteOldRequests(db),
    start: () => heartbeats.start(),
    stop: () => heartbeats.stop(),
  };
}
