import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { lapse } from "./control.ts";
import { renewControl, type SignOfLife } from "./store.ts";

/** Milliseconds between two renewals of one person's control: input that flows writes nothing but that. */
const renewEvery = 5_000;

export interface SignsOfLifeParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
}

/** Renews the control of people who give signs of life. */
export interface SignsOfLife {
  /** Hears of a person: that its input has come, or that it is there. */
  note(sessionId: string, clientId: string, hasInput: boolean): void;
  /** Forgets who waits for a renewal. */
  stop(): void;
}

interface Waiting {
  sign: SignOfLife | undefined;
  readonly timer: NodeJS.Timeout;
}

/** Makes what renews. The first sign is written at once; of those that follow, the last one every few seconds. */
export function createSignsOfLife({ db, clock, log }: SignsOfLifeParts): SignsOfLife {
  const waiting = new Map<string, Waiting>();

  function write(key: string, sign: SignOfLife): void {
    const timer = setTimeout(() => {
      const next = waiting.get(key)?.sign;
      waiting.delete(key);
      if (next) write(key, next);
    }, renewEvery);
    timer.unref();
    waiting.set(key, { sign: undefined, timer });
    renewControl(db, sign, lapse).catch((error: unknown) => {
      log.warn({ err: error, session_id: sign.sessionId }, "control cannot be renewed at the moment");
    });
  }

  return {
    note(sessionId, clientId, hasInput) {
      const key = `${sessionId} ${clientId}`;
      const heardAt = new Date(clock.now());
      const earlier = waiting.get(key);
      const inputAt = hasInput ? heardAt : (earlier?.sign?.inputAt ?? null);
      const sign = { sessionId, clientId, heardAt, inputAt };
      if (earlier) earlier.sign = sign;
      else write(key, sign);
    },
    stop() {
      for (const { timer } of waiting.values()) clearTimeout(timer);
      waiting.clear();
    },
  };
}
