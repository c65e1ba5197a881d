import type { Credential } from "../kernel/bearer-kind.ts";
import type { Principal } from "../kernel/call.ts";
import type { Clock } from "../platform/clock.ts";
import { asFailure, type Failure } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import { createRepeatedJob, type RepeatedJob } from "../platform/repeated-job.ts";
import type { Bearer } from "./bearer.ts";

/** Milliseconds. A bus that has lost a message costs an ended bearer no more than this and a query. */
const every = 2_000;

/** What a request would get that showed the bearer now. */
export type Verdict = { readonly principal: Principal } | { readonly failure: Failure };

/** The bearers of open streams, read again and again in one query for each kind. */
export interface BearerWatch extends RepeatedJob {
  /** Tells the verdict after every reading, until the returned function is called. */
  add(bearer: Bearer, hear: (verdict: Verdict) => void): () => void;
}

interface Watched {
  readonly bearer: Bearer;
  readonly hear: (verdict: Verdict) => void;
}

/** Makes a watch; `judge` throws what is wrong with a bearer. */
export function createBearerWatch({
  judge,
  ...parts
}: {
  judge(bearer: Bearer, credential: Credential | undefined): Principal;
  clock: Clock;
  log: Log;
}): BearerWatch {
  const all = new Set<Watched>();

  function tell({ bearer, hear }: Watched, credential: Credential | undefined): void {
    let verdict: Verdict;
    try {
      verdict = { principal: judge(bearer, credential) };
    } catch (thrown) {
      verdict = { failure: asFailure(thrown) };
    }
    hear(verdict);
  }

  async function readAgain(): Promise<void> {
    for (const [kind, watched] of Map.groupBy(all, ({ bearer }) => bearer.kind)) {
      const found = await kind.find([...new Set(watched.map(({ bearer }) => bearer.id))]);
      for (const one of watched) {
        // It may have gone while the query ran.
        if (all.has(one)) tell(one, found.get(one.bearer.id));
      }
    }
  }

  const complaint = "the bearers of open streams cannot be read at the moment";
  return {
    ...createRepeatedJob({ run: readAgain, every, complaint }, parts),
    add(bearer, hear) {
      const watched = { bearer, hear };
      all.add(watched);
      return () => all.delete(watched);
    },
  };
}
