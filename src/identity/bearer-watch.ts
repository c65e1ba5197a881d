import type { Bearer, Credential } from "../kernel/bearer-kind.ts";
import type { Principal } from "../kernel/call.ts";
import type { Clock } from "../platform/clock.ts";
import { asFailure, type Failure } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import { createRepeatedJob, type RepeatedJob } from "../platform/repeated-job.ts";

/** Milliseconds between readings. If the bus lost the message of a change, the change is noticed within this time. */
const every = 2_000;

/** Principal of a bearer, or the failure that a request with the bearer would now return. */
export type BearerState = { readonly principal: Principal } | { readonly failure: Failure };

/** Rereads the bearers of open streams periodically, in one query per kind. */
export interface BearerWatch extends RepeatedJob {
  /** Reports the result of each reading until the returned function is called. */
  add(bearer: Bearer, onState: (state: BearerState) => void): () => void;
}

interface Watched {
  readonly bearer: Bearer;
  readonly onState: (state: BearerState) => void;
}

/** Creates a watch. `verify` throws if a bearer is not valid. */
export function createBearerWatch({
  verify,
  ...parts
}: {
  verify(bearer: Bearer, credential: Credential | undefined): Principal;
  clock: Clock;
  log: Log;
}): BearerWatch {
  const all = new Set<Watched>();

  function notify({ bearer, onState }: Watched, credential: Credential | undefined): void {
    let state: BearerState;
    try {
      state = { principal: verify(bearer, credential) };
    } catch (thrown) {
      state = { failure: asFailure(thrown) };
    }
    onState(state);
  }

  async function readAgain(): Promise<void> {
    for (const [kind, watched] of Map.groupBy(all, ({ bearer }) => bearer.kind)) {
      const found = await kind.find([...new Set(watched.map(({ bearer }) => bearer.id))]);
      for (const one of watched) {
        // The stream may have ended during the query.
        if (all.has(one)) notify(one, found.get(one.bearer.id));
      }
    }
  }

  const failureMessage = "failed to read the bearers of open streams";
  return {
    ...createRepeatedJob({ run: readAgain, every, failureMessage }, parts),
    add(bearer, onState) {
      const watched = { bearer, onState };
      all.add(watched);
      return () => all.delete(watched);
    },
  };
}
