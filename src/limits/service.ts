import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type LimitsService,
  type RateLimitBucket,
  RateLimitBucketSchema,
  type RateLimitOverride,
  RateLimitOverrideSchema,
  RateLimitsSchema,
  UsageSchema,
} from "../gen/pilothouse/v1/limits_pb.ts";
import type { Principal } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { BucketState, Buckets } from "./buckets.ts";
import type { Limits } from "./limits.ts";
import { monthAt, monthNamed, splitByDay } from "./month.ts";
import { toTierMessage } from "./tier-message.ts";
import { bucketNames } from "./tiers.ts";
import { findUsage, nothingUsed } from "./usage.ts";

export interface LimitsServiceParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly buckets: Buckets;
  readonly limits: Limits;
}

export function createLimitsService(parts: LimitsServiceParts): ServiceImplementation<typeof LimitsService> {
  const { db, clock, buckets, limits } = parts;

  function overrideOf(principal: Principal, bucket: string): RateLimitOverride | undefined {
    const override = limits.overrides(principal).find(({ limit }) => limit === bucket);
    if (!override) return undefined;
    const { expiresAt, reason } = override;
    const expires = timestampFromMs(Date.parse(expiresAt));
    return create(RateLimitOverrideSchema, { expiresAt: expires, ...(reason !== undefined && { reason }) });
  }

  function toMessage(principal: Principal, { bucket, capacity, remaining, resetAt }: BucketState): RateLimitBucket {
    const override = overrideOf(principal, bucket);
    return create(RateLimitBucketSchema, {
      name: bucket,
      // While Redis is down, shows this gateway's share, like the rate-limit headers.
      capacity,
      refillPerMinute: Math.round(limits.bucket(principal, bucket).refillPerSecond * 60),
      remaining,
      resetAt: timestampFromMs(resetAt * 1_000),
      ...(override && { override }),
    });
  }

  return {
    async getRateLimits({ principal }) {
      const requests = bucketNames.map((bucket) => ({ bucket, ...limits.bucket(principal, bucket) }));
      const states = await buckets.read(principal.accountId, requests, clock.now());
      const { tier } = principal;
      return create(RateLimitsSchema, {
        tier: toTierMessage(tier),
        buckets: states.map((state) => toMessage(principal, state)),
      });
    },
    async getUsage({ principal }, request) {
      const month = request.month === undefined ? monthAt(clock.now()) : monthNamed(request.month);
      const used = await findUsage(db, principal.accountId, month);
      const byDay = new Map(used.days.map((day) => [day.day, day]));
      // Includes the current day from its first millisecond.
      const days = splitByDay(month.startsAt, Math.min(month.endsAt, clock.now() + 1)).map(({ day }) => {
        const { sessionMs, sessions, fetchMs, fetches } = byDay.get(day) ?? nothingUsed();
        return { date: day, sessionSeconds: inSeconds(sessionMs), sessions, fetchSeconds: inSeconds(fetchMs), fetches };
      });
      return create(UsageSchema, { month: month.name, days });
    },
  };
}

const inSeconds = (ms: number): bigint => BigInt(Math.floor(ms / 1_000));
