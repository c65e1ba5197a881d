import { sql } from "kysely";
import { fail } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";

/** Milliseconds in which attempts are counted. */
const windowMs = 3_600_000;

/** Maximum number of attempts per hour, counted by name. */
export interface Throttle {
  readonly name: string;
  readonly limit: number;
}

export interface CountedAttempt {
  readonly name: string;
  readonly at: Date;
}

/**
 * Limits attempts, such as password guesses and sign-ups. Counts attempts in PostgreSQL, exactly and across all
 * gateways, independently of Redis. Attempts are counted before they run, so concurrent attempts cannot exceed the
 * limit.
 */
export interface Throttles {
  /** Counts an attempt on the first throttle below its limit. Returns undefined if all limits are reached. */
  count(throttles: readonly Throttle[]): Promise<CountedAttempt | undefined>;
  /** Like `count`, but throws `rate-limited` if all limits are reached. `what` is a plural noun for the error. */
  take(throttles: readonly Throttle[], what: string): Promise<CountedAttempt>;
  /** Removes a counted attempt after its success. */
  refund(counted: CountedAttempt): Promise<void>;
  /** Deletes the counts of names without an attempt in the last hour. */
  sweep(): Promise<void>;
}

export function createThrottles({ db, clock }: Pick<PlatformParts, "db" | "clock">): Throttles {
  async function countBy({ name, limit }: Throttle, now: number): Promise<boolean> {
    const at = new Date(now);
    const since = new Date(now - windowMs);
    const { rows } = await sql`
      insert into throttles as b (name, tries, until) values (${name}, array[${at}::timestamptz], ${new Date(now + windowMs)})
      on conflict (name) do update
        set tries = array(select t from unnest(b.tries) t where t > ${since}) || excluded.tries, until = excluded.until
        where (select count(*) from unnest(b.tries) t where t > ${since}) < ${limit}
      returning name`.execute(db.sql);
    return rows.length > 0;
  }

  async function count(throttles: readonly Throttle[]): Promise<CountedAttempt | undefined> {
    const now = clock.now();
    for (const throttle of throttles)
      if (await countBy(throttle, now)) return { name: throttle.name, at: new Date(now) };
    return undefined;
  }

  /** Returns the seconds until one of the throttles allows another attempt. */
  async function secondsLeft(throttles: readonly Throttle[]): Promise<number> {
    const now = clock.now();
    const names = throttles.map(({ name }) => name);
    const rows = await db.sql.selectFrom("throttles").select("tries").where("name", "in", names).execute();
    const waits = rows.map(({ tries: [oldest] }) => (oldest?.getTime() ?? now) + windowMs - now);
    return Math.max(1, Math.ceil(Math.min(windowMs, ...waits) / 1_000));
  }

  return {
    count,
    async take(throttles, what) {
      const counted = await count(throttles);
      if (counted) return counted;
      const seconds = await secondsLeft(throttles);
      const detail = `too many ${what} within an hour; wait ${seconds} s`;
      throw fail("rate-limited", { retry_after_seconds: seconds }, { detail, retryAfter: seconds });
    },
    async refund({ name, at }) {
      await sql`
        update throttles set tries = array(
          select t from unnest(tries) with ordinality as each (t, place)
          where place is distinct from array_position(tries, ${at}::timestamptz) order by place
        ) where name = ${name}`.execute(db.sql);
    },
    async sweep() {
      await db.sql.deleteFrom("throttles").where("until", "<=", new Date(clock.now())).execute();
    },
  };
}
