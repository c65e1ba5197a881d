import { readFileSync } from "node:fs";
import { ConfigError } from "../platform/environment.ts";
import { numberLimits, withLimit } from "./limits.ts";
import { bucketNames, isBucketName, type Tier, tiers } from "./tiers.ts";

/**
 * Maximum values of limits. Limits other than bytes are 32-bit fields of the API. A session runs for at most a day.
 */
const largest = { number: 2 ** 32 - 1, bytes: 2 ** 50, sessionSeconds: 86_400 };

const limitNames: readonly string[] = [...bucketNames, ...numberLimits];

/** Throws the error for a value of the file. `place` is its path of names, such as `free.profiles`. */
function refuse(place: string, expected: string, value: unknown): never {
  const got = JSON.stringify(value)?.slice(0, 100) ?? "nothing";
  throw new ConfigError("TIERS_FILE", `accepts ${expected} as ${place}, not \`${got}\``);
}

function readMembers(place: string, value: unknown): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) refuse(place, "an object", value);
  return Object.entries(value);
}

function readWhole(place: string, value: unknown, min: number, max: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
  return refuse(place, `a whole number from ${min} to ${max}`, value);
}

function readNumber(place: string, limit: string, value: unknown): number {
  if (limit === "session_minutes" && value === null) return Number.POSITIVE_INFINITY;
  if (limit === "longest_session_seconds") return readWhole(place, value, 1, largest.sessionSeconds);
  return readWhole(place, value, 0, limit.endsWith("_bytes") ? largest.bytes : largest.number);
}

/** Returns the tier with a limit of the file applied. */
function changeLimit(tier: Tier, [limit, value]: [string, unknown]): Tier {
  const place = `${tier.name}.${limit}`;
  if (!limitNames.includes(limit)) return refuse(tier.name, `the limits ${limitNames.join(", ")}`, limit);
  if (!isBucketName(limit)) return withLimit(tier, { limit, value: readNumber(place, limit, value) });
  const sizes = new Map(readMembers(place, value));
  const unknown = [...sizes.keys()].find((name) => name !== "capacity" && name !== "refill_per_minute");
  if (unknown !== undefined) refuse(place, "`capacity` and `refill_per_minute`", unknown);
  const readSize = (name: string) => readWhole(`${place}.${name}`, sizes.get(name), 1, largest.number);
  return withLimit(tier, { limit, value: readSize("capacity"), refillPerMinute: readSize("refill_per_minute") });
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError("TIERS_FILE", `accepts the path of a JSON file: ${reason}`);
  }
}

/**
 * Reads the operator's limits and returns the tiers that they change. Limits that the file does not name stay. Throws a
 * ConfigError for the first invalid value.
 */
export function readTiersFile(path: string | undefined): ReadonlyMap<string, Tier> {
  if (path === undefined) return new Map();
  const changed = readMembers("the file", readJson(path)).map(([name, limits]): [string, Tier] => {
    const tier = tiers.find(name) ?? refuse("the file", `the tiers ${tiers.names.join(", ")}`, name);
    return [name, readMembers(name, limits).reduce(changeLimit, tier)];
  });
  return new Map(changed);
}
