import type { Ids } from "../platform/ids.ts";
import type { Log } from "../platform/log.ts";
import type { RepeatedWork } from "../platform/repeated-job.ts";
import type { SessionCaller } from "../sessions/session-caller.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { Controls } from "./control.ts";
import type { ControlRow } from "./store.ts";

/** Milliseconds between two looks for control that has lapsed. */
const lookEvery = 1_000;

/** Milliseconds that a worker has to take note; the next command of the session tells it what it has missed. */
const tellWithin = 2_000;

export interface LapseParts {
  readonly controls: Controls;
  readonly sessions: Sessions;
  readonly ids: Ids;
  readonly log: Log;
}

/** Gives control back whose holder has vanished, and has the workers know. */
export function lapseJob({ controls, sessions, ids, log }: LapseParts): RepeatedWork {
  async function tell({ id, account_id: accountId }: ControlRow): Promise<void> {
    const caller: SessionCaller = {
      principal: { accountId, tier: "free", overrides: [] },
      signal: AbortSignal.timeout(tellWithin),
      deadline: performance.now() + tellWithin,
      requestId: ids.next("req"),
      traceparent: "",
    };
    await sessions.tellControl(caller, id).catch((error: unknown) => {
      log.debug({ err: error, session_id: id }, "a worker could not be told that control has lapsed");
    });
  }

  return {
    async run() {
      await Promise.all((await controls.sweep()).map(tell));
    },
    every: lookEvery,
    complaint: "control that has lapsed cannot be given back at the moment",
  };
}
