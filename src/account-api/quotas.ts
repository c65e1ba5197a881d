import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { NamedAccount } from "../accounts/store.ts";
import { type QuotaUsage, QuotaUsageSchema } from "../gen/pilothouse/v1/account_pb.ts";
import { countKeys } from "../identity/api-keys/store.ts";
import type { Limits } from "../limits/limits.ts";
import { monthAt } from "../limits/month.ts";
import { findUsage, type MonthUsage } from "../limits/usage.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { countProfiles, sumStorage } from "../profiles/store.ts";

export interface QuotaParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly limits: Limits;
}

const aMinute = 60_000;

function toMessage(quota: string, used: number, limit: number): QuotaUsage {
  const bounded = Number.isFinite(limit) && { limit: BigInt(limit) };
  return create(QuotaUsageSchema, { quota, used: BigInt(Math.floor(used)), ...bounded });
}

/** Counts running browsers. Fetches that share a browser count once. */
function countBrowsers(running: MonthUsage["running"]): number {
  return new Set(running.map(({ id, fetchBrowser }) => fetchBrowser ?? id)).size;
}

/** Reads an account's usage of each of its quotas. */
export async function readQuotas({ db, clock, limits }: QuotaParts, account: NamedAccount): Promise<QuotaUsage[]> {
  const { id } = account;
  const [tier, month] = [limits.of(account), monthAt(clock.now())];
  const [{ usedMs, running }, storage, profiles, keys] = await Promise.all([
    findUsage(db, id, month),
    sumStorage(db, id),
    countProfiles(db, id),
    countKeys(db, id, new Date(clock.now())),
  ]);
  const minutes = toMessage("session_minutes", usedMs / aMinute, tier.monthlySessionMinutes);
  return [
    { ...minutes, resetsAt: timestampFromMs(month.endsAt) },
    toMessage("profile_storage_bytes", storage, tier.profileStorageBytes),
    toMessage("profiles", profiles, tier.profiles),
    toMessage("api_keys", keys, tier.apiKeys),
    toMessage("concurrent_sessions", countBrowsers(running), tier.concurrentSessions),
  ];
}
