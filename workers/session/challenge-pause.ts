import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { OnChallenge, SessionStatus } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import type { Happening } from "../base/reports.ts";
import type { ChallengeListener, SeenChallenge } from "../bot-checks/challenge-watch.ts";
import type { CommandQueue } from "./command-queue.ts";
import type { IdleClock } from "./idle-clock.ts";

/** What a bot check stops. */
export interface ChallengePauseOptions {
  readonly onChallenge: OnChallenge;
  readonly queue: CommandQueue;
  readonly idleClock: IdleClock;
  /** Hears of each check, and of its end. */
  onEvent(event: Happening): void;
}

/** Holds a session at a bot check until the check is gone: its commands, and its idle clock. */
export class ChallengePause implements ChallengeListener {
  readonly #options: ChallengePauseOptions;
  #held: { readonly kind: string; readonly idleness: Disposable } | undefined;
  #begun = new AbortController();

  constructor(options: ChallengePauseOptions) {
    this.#options = options;
  }

  /** The kind of the check for which the session is paused. */
  get reason(): string | undefined {
    return this.#held?.kind;
  }

  /** Where the session is in its life. */
  get status(): SessionStatus {
    return this.#held ? SessionStatus.PAUSED : SessionStatus.LIVE;
  }

  /** Aborts, with what a command is answered then, when the next pause begins. */
  get signal(): AbortSignal {
    return this.#begun.signal;
  }

  onSeen({ kind, url }: SeenChallenge): void {
    const { onChallenge, queue, idleClock, onEvent } = this.#options;
    const paused = onChallenge !== OnChallenge.REPORT;
    if (paused) {
      const detail = `the session is paused at a bot check (${kind}); interact with while_paused goes on`;
      const failure = fail("conflict", { pause_reason: kind }, { detail });
      this.#held = { kind, idleness: idleClock.activity() };
      queue.pause(failure);
      this.#begun.abort(failure);
    }
    onEvent({ case: "challengeSeen", value: { challenge: kind, url, paused } });
  }

  onGone(): void {
    const { queue, onEvent } = this.#options;
    this.#held?.idleness[Symbol.dispose]();
    this.#held = undefined;
    this.#begun = new AbortController();
    queue.resume();
    onEvent({ case: "challengeGone", value: {} });
  }
}

/** A check as `state` shows it. */
export function challengeMessage({ kind, url, detectedAt }: SeenChallenge) {
  return { kind, url, detectedAt: timestampFromDate(detectedAt) };
}
