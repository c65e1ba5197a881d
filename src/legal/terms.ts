import type { LegalTerms, OutstandingTerms } from "../kernel/call.ts";
import type { Clock } from "../platform/clock.ts";
import { type Failure, fail } from "../platform/errors.ts";
import { createFreshCache } from "../platform/fresh-cache.ts";
import type { Database } from "../platform/postgres/database.ts";
import { isDatabaseAway } from "../platform/postgres/database-away.ts";
import { hasAccepted, listRevisions, type RevisionRow } from "./store.ts";

/** Milliseconds. A revision is published two weeks ahead: none comes into force that a gateway has not read by then. */
const times = { freshFor: 5_000, staleFor: 60_000, patience: 300 };

/** How many accounts are remembered to have accepted the revision in force. */
const mostAccounts = 10_000;

/** The revisions that the operator has published. */
export interface Terms extends LegalTerms {
  /** The revision in force, or the first one while none is; undefined before any was published. */
  current(): Promise<RevisionRow | undefined>;
  /** Finds a revision that may be accepted: the one in force, or one that comes after it. */
  acceptable(id: string): Promise<RevisionRow | undefined>;
}

/** The failure of what accepts a revision that was replaced, or never published. */
export const notAcceptable = (): Failure => fail("conflict", {}, { detail: notCurrent });

const notCurrent =
  "the revision is neither in force nor one that comes after it: read GET /v1/legal/current, and accept that";

/** Makes the terms of a gateway. */
export function createTerms({ db, clock }: { readonly db: Database; readonly clock: Clock }): Terms {
  const cache = createFreshCache<readonly RevisionRow[]>({
    load: () => listRevisions(db),
    isAway: isDatabaseAway,
    capacity: 1,
    clock,
    ...times,
  });
  /** Accounts by the revision that they have accepted: an acceptance is never taken back. */
  const accepted = new Map<string, string>();

  function inForce(revisions: readonly RevisionRow[]): RevisionRow | undefined {
    const now = clock.now();
    return revisions.findLast(({ effective_at: at }) => at.getTime() <= now);
  }

  const isDone = (revision: RevisionRow | undefined, accountId: string): boolean =>
    !revision || accepted.get(accountId) === revision.id;

  async function lookUp(accountId: string): Promise<OutstandingTerms | undefined> {
    const revision = inForce((await cache.get("")) ?? []);
    if (!revision || isDone(revision, accountId)) return undefined;
    if (!(await hasAccepted(db, accountId, revision.effective_at))) {
      // Nobody is refused by what was read before the request came.
      const { id: revisionId, url } = inForce(await listRevisions(db)) ?? revision;
      return { revisionId, url };
    }
    if (accepted.size >= mostAccounts) accepted.clear();
    accepted.set(accountId, revision.id);
    return undefined;
  }

  return {
    outstanding(accountId) {
      const revisions = cache.peek("");
      return revisions && isDone(inForce(revisions), accountId) ? undefined : lookUp(accountId);
    },
    async current() {
      const revisions = await listRevisions(db);
      return inForce(revisions) ?? revisions[0];
    },
    async acceptable(id) {
      const revisions = await listRevisions(db);
      const from = inForce(revisions)?.effective_at ?? new Date(0);
      return revisions.find((revision) => revision.id === id && revision.effective_at >= from);
    },
  };
}
