import { type TierName, tiers } from "./tiers.ts";

/**
 * A paid tier: either a card subscription or a block of prepaid months. The time of a block passes only while the block
 * determines the effective tier. Times are in Unix milliseconds.
 */
export interface PaidGrant {
  /** Identifier of the subscription or order. */
  readonly id: string;
  readonly kind: "card" | "block";
  readonly tier: TierName;
  readonly createdAt: number;
  /** Number of calendar months of a block, counted from its first use. */
  readonly months: number;
  /** Remaining milliseconds of a block that has been in use, as of `runningSince` if running. */
  readonly leftMs: number | null;
  readonly runningSince: number | null;
  /** End of a card subscription after a failed payment. */
  readonly until: number | null;
  readonly endedAt: number | null;
}

export interface PaidTime {
  /** Tier set by the operator. */
  readonly arranged: TierName;
  readonly grants: readonly PaidGrant[];
}

/** Tiers of an account with the effective tier. */
export interface Served extends PaidTime {
  readonly tier: TierName;
}

/** Adds calendar months in UTC. If the resulting month lacks the day, returns its last day. */
export function addMonths(time: number, months: number): number {
  const date = new Date(time);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, last));
  return date.getTime();
}

const rank = (tier: TierName): number => tiers.names.indexOf(tier);

/** Returns the end of a grant if nothing else changes. Returns undefined if the grant is paused or open-ended. */
export function paidTimeEnd({ kind, runningSince, leftMs, until }: PaidGrant): number | undefined {
  if (kind === "card") return until ?? undefined;
  return runningSince === null || leftMs === null ? undefined : runningSince + leftMs;
}

function ended(grant: PaidGrant, at: number): PaidGrant {
  return { ...grant, endedAt: at, runningSince: null, leftMs: grant.kind === "block" ? 0 : null };
}

function paused(grant: PaidGrant, at: number): PaidGrant {
  if (grant.runningSince === null || grant.leftMs === null) return grant;
  return { ...grant, runningSince: null, leftMs: grant.leftMs - (at - grant.runningSince) };
}

/** Starts or resumes a block. The term of a block begins the first time it runs. */
function running(grant: PaidGrant, at: number): PaidGrant {
  if (grant.runningSince !== null) return grant;
  return { ...grant, runningSince: at, leftMs: grant.leftMs ?? addMonths(at, grant.months) - at };
}

/**
 * Chooses the effective tier. For equal tiers, the arranged one precedes a card, and a card precedes the oldest block,
 * so blocks last longer.
 */
function choose({ arranged, grants }: PaidTime): { readonly tier: TierName; readonly block: string | undefined } {
  const order = (left: PaidGrant, right: PaidGrant): number =>
    rank(right.tier) - rank(left.tier) ||
    Number(left.kind === "block") - Number(right.kind === "block") ||
    left.createdAt - right.createdAt ||
    (left.id < right.id ? -1 : 1);
  const [best] = grants.filter(({ endedAt }) => endedAt === null).toSorted(order);
  if (!best || rank(best.tier) <= rank(arranged)) return { tier: arranged, block: undefined };
  return { tier: best.tier, block: best.kind === "block" ? best.id : undefined };
}

/** Starts the block of the effective tier and pauses all others. */
function serveFrom(time: PaidTime, at: number): Served {
  const { tier, block } = choose(time);
  const grants = time.grants.map((grant) => (grant.id === block ? running(grant, at) : paused(grant, at)));
  return { ...time, tier, grants };
}

/** Advances to a later time. Each grant ends at its own time, at which the next grant starts. */
export function advance(time: PaidTime, now: number): Served {
  let served = time;
  for (;;) {
    const ends = served.grants.flatMap((grant) => (grant.endedAt === null ? (paidTimeEnd(grant) ?? []) : []));
    const next = Math.min(...ends);
    if (next > now) return serveFrom(served, now);
    const grants = served.grants.map((grant) =>
      grant.endedAt === null && (paidTimeEnd(grant) ?? Number.POSITIVE_INFINITY) <= next ? ended(grant, next) : grant,
    );
    served = serveFrom({ ...served, grants }, next);
  }
}

/** Ends a grant early. */
export function endGrant(time: PaidTime, id: string, at: number): PaidTime {
  const grants = time.grants.map((grant) => (grant.id === id && grant.endedAt === null ? ended(grant, at) : grant));
  return { ...time, grants };
}
