import { type TierName, tiers } from "./tiers.ts";

/** A tier that was paid for: by a card, until that ends, or as a block of months, which runs while nothing higher serves. */
export interface Grant {
  /** Identifier of the subscription or the order. */
  readonly id: string;
  readonly kind: "card" | "block";
  readonly tier: TierName;
  /** Milliseconds since the Unix epoch. */
  readonly createdAt: number;
  /** Of a block: the calendar months that it is, from when it first serves. */
  readonly months: number;
  /** Of a block that has served: the milliseconds that it has left, as of `runningSince` where it runs. */
  readonly leftMs: number | null;
  readonly runningSince: number | null;
  /** Of a card: when it ends by itself, since a payment has failed. */
  readonly until: number | null;
  readonly endedAt: number | null;
}

/** What an account is served by. */
export interface PaidTime {
  /** What the operator has arranged. */
  readonly arranged: TierName;
  readonly grants: readonly Grant[];
}

/** The same at a later time, and the tier that serves then. */
export interface Served extends PaidTime {
  readonly tier: TierName;
}

/** Adds calendar months in UTC: of a day that a month lacks it gives the last one that it has. */
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

/** When a grant ends if nothing else happens; undefined while it stands still. */
export function endOf({ kind, runningSince, leftMs, until }: Grant): number | undefined {
  if (kind === "card") return until ?? undefined;
  return runningSince === null || leftMs === null ? undefined : runningSince + leftMs;
}

function ended(grant: Grant, at: number): Grant {
  return { ...grant, endedAt: at, runningSince: null, leftMs: grant.kind === "block" ? 0 : null };
}

/** Stops a block where it is. */
function paused(grant: Grant, at: number): Grant {
  if (grant.runningSince === null || grant.leftMs === null) return grant;
  return { ...grant, runningSince: null, leftMs: grant.leftMs - (at - grant.runningSince) };
}

/** Has a block run. Its months begin when it first does. */
function running(grant: Grant, at: number): Grant {
  if (grant.runningSince !== null) return grant;
  return { ...grant, runningSince: at, leftMs: grant.leftMs ?? addMonths(at, grant.months) - at };
}

/** Of equal tiers the operator's serves before a card's, which is paid anyway, and that before the oldest block. */
function choose({ arranged, grants }: PaidTime): { readonly tier: TierName; readonly block: string | undefined } {
  const order = (left: Grant, right: Grant): number =>
    rank(right.tier) - rank(left.tier) ||
    Number(left.kind === "block") - Number(right.kind === "block") ||
    left.createdAt - right.createdAt ||
    (left.id < right.id ? -1 : 1);
  const [best] = grants.filter(({ endedAt }) => endedAt === null).toSorted(order);
  if (!best || rank(best.tier) <= rank(arranged)) return { tier: arranged, block: undefined };
  return { tier: best.tier, block: best.kind === "block" ? best.id : undefined };
}

/** Has what is highest serve from a time on, and everything else stand still. */
function serveFrom(time: PaidTime, at: number): Served {
  const { tier, block } = choose(time);
  const grants = time.grants.map((grant) => (grant.id === block ? running(grant, at) : paused(grant, at)));
  return { ...time, tier, grants };
}

/** Lets time pass: what has ended meanwhile ends at its own time, and what follows it begins there. */
export function advance(time: PaidTime, now: number): Served {
  let served = time;
  for (;;) {
    const ends = served.grants.flatMap((grant) => (grant.endedAt === null ? (endOf(grant) ?? []) : []));
    const next = Math.min(...ends);
    if (next > now) return serveFrom(served, now);
    const grants = served.grants.map((grant) =>
      grant.endedAt === null && (endOf(grant) ?? Number.POSITIVE_INFINITY) <= next ? ended(grant, next) : grant,
    );
    served = serveFrom({ ...served, grants }, next);
  }
}

/** Ends a grant before its time. */
export function endGrant(time: PaidTime, id: string, at: number): PaidTime {
  const grants = time.grants.map((grant) => (grant.id === id && grant.endedAt === null ? ended(grant, at) : grant));
  return { ...time, grants };
}
