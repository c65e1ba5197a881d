import type { Override } from "../../src/kernel/entitlement.ts";
import { createArrangements } from "../../src/limits/arrangements.ts";
import { numberLimits } from "../../src/limits/limits.ts";
import { bucketNames } from "../../src/limits/tiers.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import { type AdminCommand, type Given, nameList } from "./command.ts";
import { accountOf, asOperator } from "./operator.ts";
import { readTime } from "./read-time.ts";

/** Largest value of 32-bit fields in the contract. A larger capacity could not be shown. */
const largest = 2 ** 32 - 1;

const limits: readonly string[] = [...bucketNames, ...numberLimits];
const isBucket = (limit: string): boolean => bucketNames.some((name) => name === limit);

function readLimit(limit: string | undefined): string {
  if (limit !== undefined && limits.includes(limit)) return limit;
  throw new StartRefused(`--limit accepts ${limits.join(", ")}, not ${limit ?? "nothing"}`);
}

/** Parses an option as a whole number. Throws if it is out of range. */
function readNumber(option: string, text: string | undefined, min: number, max = largest): number {
  const value = /^\d{1,15}$/.test(text ?? "") ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new StartRefused(`--${option} accepts a whole number from ${min} to ${max}, not ${text ?? "nothing"}`);
}

function readOverride(given: Given): Override {
  const limit = readLimit(given.limit);
  const refill = given["refill-per-minute"];
  if (!isBucket(limit) && refill !== undefined)
    throw new StartRefused("--refill-per-minute applies only to rate-limit buckets");
  return {
    limit,
    // Only byte limits may exceed 32 bits.
    value: readNumber("value", given.value, isBucket(limit) ? 1 : 0, limit.endsWith("_bytes") ? 2 ** 50 : largest),
    ...(isBucket(limit) && { refillPerMinute: readNumber("refill-per-minute", refill, 1) }),
    expiresAt: readTime("until", given.until).toISOString(),
    ...(given.reason !== undefined && { reason: given.reason }),
  };
}

export const setOverride: AdminCommand = {
  help: `override --account <name or id> --limit <limit> --value <number> --until <time> [options]

  overrides a limit of the tier until a given time, in force within 5 s

  --limit <limit>         ${nameList(limits)}
  --value <number>        the limit; for a rate-limit bucket its capacity
  --refill-per-minute <n> tokens per minute; required for a rate-limit bucket, not allowed otherwise
  --until <time>          such as 2030-01-31T12:00:00Z, or 90m, 12h, 7d from now
  --reason <text>         shown to the account`,
  options: ["account", "limit", "value", "refill-per-minute", "until", "reason"],
  run(given, env) {
    const override = readOverride(given);
    return asOperator(env, ({ db, bus, audit }) =>
      db.transaction(async (tx) => {
        const { id, name } = await accountOf(tx, given.account);
        await createArrangements({ clock: systemClock, bus }).override(tx, id, override);
        const record = { accountId: id, actor: { kind: "operator" }, action: "account.override", subject: id } as const;
        audit.record(tx, { ...record, data: { ...override } });
        return `${name} (${id}) has ${override.limit} ${override.value} until ${override.expiresAt}.`;
      }),
    );
  },
};

export const endOverride: AdminCommand = {
  help: `end-override --account <name or id> --limit <limit>

  ends an override before its time`,
  options: ["account", "limit"],
  run({ account, limit: given }, env) {
    const limit = readLimit(given);
    return asOperator(env, ({ db, bus, audit }) =>
      db.transaction(async (tx) => {
        const { id, name } = await accountOf(tx, account);
        const ended = await createArrangements({ clock: systemClock, bus }).endOverride(tx, id, limit);
        if (!ended) throw new StartRefused(`${name} (${id}) has no override of ${limit}`);
        const action = "account.end_override";
        audit.record(tx, { accountId: id, actor: { kind: "operator" }, action, subject: id, data: { limit } });
        return `${name} (${id}) has the ${limit} of its tier again.`;
      }),
    );
  },
};
