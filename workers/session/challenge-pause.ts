import { OnChallenge, SessionStatus } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import type { ReportedEvent } from "../base/reports.ts";
import type { ChallengeListener, SeenChallenge } from "../bot-checks/challenge-watch.ts";
import type { CommandQueue } from "./command-queue.ts";
import type { IdleClock } from "./idle-clock.ts";

/** Parts of a session that a bot check pauses. */
export interface ChallengePauseOptions {
  readonly onChallenge: OnChallenge;
  readonly queue: CommandQueue;
  readonly idleClock: IdleClock;
  /** Called when a bot check appears or disappears. */
  onEvent(event: ReportedEvent): void;
}

/**
 * Pauses a session's commands and its idle timer during a bot check. With `OnChallenge.REPORT`, only reports the check.
 */
export class ChallengePause implements ChallengeListener {
  readonly #options: ChallengePauseOptions;
  #paused: { readonly kind: string; readonly idleness: Disposable } | undefined;
  #pauseStart = new AbortController();

  constructor(options: ChallengePauseOptions) {
    this.#options = options;
  }

  /** Kind of the check that pauses the session, if any. */
  get reason(): string | undefined {
    return this.#paused?.kind;
  }

  get status(): SessionStatus {
    return this.#paused ? SessionStatus.PAUSED : SessionStatus.LIVE;
  }

  /** Aborts with the failure for running commands when the next pause starts. */
  get signal(): AbortSignal {
    return this.#pauseStart.signal;
  }

  onSeen({ kind, url }: SeenChallenge): void {
    const { onChallenge, queue, idleClock, onEvent } = this.#options;
    const paused = onChallenge !== OnChallenge.REPORT;
    if (paused) {
      const detail = `the session is paused at a bot check (${kind}); use interact with while_paused to continue`;
      const failure = fail("conflict", { pause_reason: kind }, { detail });
      this.#paused = { kind, idleness: idleClock.activity() };
      queue.pause(failure);
      this.#pauseStart.abort(failure);
    }
    onEvent({ case: "challengeSeen", value: { challenge: kind, url, paused } });
  }

  onGone(): void {
    const { queue, onEvent } = this.#options;
    this.#paused?.idleness[Symbol.dispose]();
    this.#paused = undefined;
    this.#pauseStart = new AbortController();
    queue.resume();
    onEvent({ case: "challengeGone", value: {} });
  }
}
