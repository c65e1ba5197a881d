import type { Tier } from "../limits/tiers.ts";
import { counted } from "../platform/counted.ts";
import { type Failure, fail } from "../platform/errors.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { lockProfile, sumStorage } from "./store.ts";
import { findHolder } from "./use-store.ts";

export interface ProfileRequest {
  readonly profileId: string;
  readonly accountId: string;
  readonly tier: Tier;
  readonly runtime: string;
}

/**
 * Result of a reservation: the profile, locked until the transaction ends, or the ended session that still saves the
 * profile.
 */
export type ProfileReservation =
  | { readonly kind: "free"; readonly version: bigint }
  | { readonly kind: "saving"; readonly sessionId: string };

/** The failure for an unknown profile or a profile of another account. */
export const noProfile = (): Failure => fail("not-found", {}, { detail: "no profile has this id" });

/** The failure for a profile that another session holds. */
export const profileInUse = (sessionId: string): Failure =>
  fail(
    "profile-in-use",
    { active_session_id: sessionId },
    { detail: `the session ${sessionId} uses the profile: end it first, or leave profile_id out` },
  );

/**
 * Reserves a profile for a session that is inserted in the same transaction. The account must be locked. Throws if the
 * session cannot use the profile, or if the account has no storage left.
 */
export async function reserveProfile(
  tx: Tx,
  { profileId, accountId, tier, runtime }: ProfileRequest,
): Promise<ProfileReservation> {
  const profile = await lockProfile(tx, profileId, accountId);
  if (!profile) throw noProfile();
  if (profile.engine !== null && profile.engine !== engineOf(runtime)) {
    const detail = `the profile was saved by ${profile.engine}, and ${runtime} cannot read it: use a runtime with the engine ${profile.engine}`;
    throw fail("driver-not-integrated", { runtime }, { detail });
  }
  const holder = await findHolder(tx, profileId);
  if (holder && holder.held_until === null) throw profileInUse(holder.session_id);
  if (holder) return { kind: "saving", sessionId: holder.session_id };
  await assertRoom(tx, accountId, tier);
  return { kind: "free", version: BigInt(profile.version) };
}

async function assertRoom(tx: Tx, accountId: string, tier: Tier): Promise<void> {
  if (tier.profileStorageIsSoft) return;
  const used = await sumStorage(tx, accountId);
  const cap = tier.profileStorageBytes;
  if (used < cap) return;
  const detail = `the account's profiles use ${counted(used, "byte")} of their limit of ${cap}: delete a profile, or leave profile_id out`;
  throw fail("storage-quota-exceeded", { used_bytes: used, cap_bytes: cap, tier: tier.name }, { detail });
}

/** Browser engine of a runtime. Profiles are in the format of their engine. */
function engineOf(runtime: string): string {
  return runtime === "headless-shell" ? "chromium" : runtime;
}
