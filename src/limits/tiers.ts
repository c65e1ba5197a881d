/** Capacity and refill rate of a token bucket. */
export interface BucketSize {
  /** Maximum burst of requests. */
  readonly capacity: number;
  readonly refillPerSecond: number;
}

export const bucketNames = [
  "global",
  "sessions:create",
  "agent_sessions:message",
  "agent_sessions:input_event",
] as const;

export type BucketName = (typeof bucketNames)[number];

export interface Tier {
  readonly name: TierName;
  readonly concurrentSessions: number;
  /** Session minutes per month. `Infinity`: no quota. */
  readonly monthlySessionMinutes: number;
  readonly profiles: number;
  readonly profileStorageBytes: number;
  /** Whether the storage limit only causes warnings. */
  readonly profileStorageIsSoft: boolean;
  readonly apiKeys: number;
  readonly longestSessionSeconds: number;
  readonly buckets: Readonly<Record<BucketName, BucketSize>>;
}

const minutes = 60;
const hours = 60 * minutes;
const mebibytes = 2 ** 20;
const gibibytes = 2 ** 30;

const size = (capacity: number, refillPerSecond: number): BucketSize => ({ capacity, refillPerSecond });
const perMinute = (capacity: number, refill: number): BucketSize => size(capacity, refill / 60);

/** All tiers. Bucket sizes of free, personal and api_builder are part of the public contract. */
const table = {
  free: {
    concurrentSessions: 1,
    monthlySessionMinutes: 60,
    profiles: 1,
    profileStorageBytes: 10 * mebibytes,
    profileStorageIsSoft: false,
    apiKeys: 2,
    longestSessionSeconds: 15 * minutes,
    buckets: {
      global: size(60, 1),
      "sessions:create": perMinute(5, 1),
      "agent_sessions:message": size(20, 1 / 5),
      "agent_sessions:input_event": size(240, 60),
    },
  },
  personal: {
    concurrentSessions: 3,
    monthlySessionMinutes: 1_200,
    profiles: 5,
    profileStorageBytes: 100 * mebibytes,
    profileStorageIsSoft: false,
    apiKeys: 5,
    longestSessionSeconds: 1 * hours,
    buckets: {
      global: perMinute(120, 120),
      "sessions:create": perMinute(10, 2),
      "agent_sessions:message": perMinute(40, 20),
      "agent_sessions:input_event": perMinute(360, 5_400),
    },
  },
  api_builder: {
    concurrentSessions: 20,
    monthlySessionMinutes: 20_000,
    profiles: 50,
    profileStorageBytes: 1 * gibibytes,
    profileStorageIsSoft: false,
    apiKeys: 20,
    longestSessionSeconds: 6 * hours,
    buckets: {
      global: perMinute(1_800, 1_800),
      "sessions:create": perMinute(60, 60),
      "agent_sessions:message": perMinute(300, 180),
      "agent_sessions:input_event": perMinute(600, 9_000),
    },
  },
  api_scale: {
    concurrentSessions: 100,
    monthlySessionMinutes: 200_000,
    profiles: 500,
    profileStorageBytes: 10 * gibibytes,
    profileStorageIsSoft: false,
    apiKeys: 100,
    longestSessionSeconds: 24 * hours,
    buckets: {
      global: perMinute(6_000, 6_000),
      "sessions:create": perMinute(300, 300),
      "agent_sessions:message": perMinute(1_200, 900),
      "agent_sessions:input_event": perMinute(1_200, 18_000),
    },
  },
  enterprise: {
    concurrentSessions: 500,
    monthlySessionMinutes: Number.POSITIVE_INFINITY,
    profiles: 5_000,
    profileStorageBytes: 100 * gibibytes,
    profileStorageIsSoft: true,
    apiKeys: 500,
    longestSessionSeconds: 24 * hours,
    buckets: {
      global: perMinute(30_000, 30_000),
      "sessions:create": perMinute(1_000, 1_000),
      "agent_sessions:message": perMinute(6_000, 4_500),
      "agent_sessions:input_event": perMinute(2_400, 36_000),
    },
  },
} as const satisfies Record<string, Omit<Tier, "name">>;

/** Name of a tier as stored in accounts. */
export type TierName = keyof typeof table;

/** Registry of tiers without overrides. src/limits/limits.ts applies overrides. */
export interface Tiers {
  readonly names: readonly TierName[];
  find(name: string): Tier | undefined;
  /** Throws for an unknown tier, such as a tier of a later release, so that its name is not overwritten. */
  get(name: string): Tier;
}

function isTierName(name: string): name is TierName {
  return Object.hasOwn(table, name);
}

/** Returns whether a rate-limit bucket has this name. */
export function isBucketName(name: string): name is BucketName {
  return bucketNames.some((bucket) => bucket === name);
}

const names = Object.keys(table).filter(isTierName);
const byName = new Map<string, Tier>(names.map((name) => [name, { name, ...table[name] }]));

export const tiers: Tiers = {
  names,
  find: (name) => byName.get(name),
  get(name) {
    const tier = byName.get(name);
    if (!tier) throw new Error(`expected a known tier, got ${name}`);
    return tier;
  },
};
