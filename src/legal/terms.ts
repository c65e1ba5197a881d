import type { LegalTerms, OutstandingTerms } from "../kernel/call.ts";
import { type Failure, fail } from "../platform/errors.ts";
import { createFreshCache } from "../platform/fresh-cache.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { isDatabaseUnavailable } from "../platform/postgres/database-unavailable.ts";
import { hasAccepted, listRevisions, type RevisionRow } from "./store.ts";

/** Times in milliseconds for the cache of revisions. */
const times = {
  /**
   * Time for which loaded revisions are used without another load. A revision is published 14 days before its effective
   * date, so every gateway loads the revision in time.
   */
  freshFor: 5_000,
  /** Time for which loaded revisions may be used while PostgreSQL is unavailable. */
  staleFor: 60_000,
  /** Time to wait for PostgreSQL before older revisions are used. */
  maxWait: 300,
};

/** Maximum number of accounts cached as having accepted the current revision. */
const maxAccounts = 10_000;

/** Published revisions of the terms. */
export interface Terms extends LegalTerms {
  /** Returns the revision in force, or else the first upcoming revision; undefined if none is published. */
  current(): Promise<RevisionRow | undefined>;
  /** Finds a revision that may be accepted: the current or a later revision. */
  acceptable(id: string): Promise<RevisionRow | undefined>;
}

/** Returns the failure for a revision that was replaced or never published. */
export const notAcceptable = (): Failure => fail("conflict", {}, { detail: notCurrent });

const notCurrent =
  "the revision is neither in force nor upcoming: accept the revision that GET /v1/legal/current returns";

export function createTerms({ db, clock }: Pick<PlatformParts, "db" | "clock">): Terms {
  const cache = createFreshCache<readonly RevisionRow[]>({
    load: () => listRevisions(db),
    isUnavailable: isDatabaseUnavailable,
    capacity: 1,
    clock,
    ...times,
  });
  /** Revision in force that an account has accepted, by account. Never outdated, because acceptances are permanent. */
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
      // The cache may be stale, so the revision is read again before a request is rejected.
      const { id: revisionId, url } = inForce(await listRevisions(db)) ?? revision;
      return { revisionId, url };
    }
    if (accepted.size >= maxAccounts) accepted.clear();
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
