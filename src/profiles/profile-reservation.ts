import type { Tier } from "../limits/tiers.ts";
import { counted } from "../platform/counted.ts";
import { type Failure, fail } from "../platform/errors.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { engineOf } from "./engine.ts";
import { lockProfile, sumStorage } from "./store.ts";
import { findHolder } from "./use-store.ts";

/** What a session that is to be launched asks of a profile. */
export interface ProfileWish {
  readonly profileId: string;
  readonly accountId: string;
  readonly tier: Tier;
  readonly runtime: string;
}

/** A profile that a session may have, locked until the transaction ends; or the ended session that still saves it. */
export type ProfileReservation =
  | { readonly kind: "free"; readonly version: bigint }
  | { readonly kind: "saving"; readonly sessionId: string };

/** The failure of what asks for a profile that is not there, or belongs to another account. */
export const noProfile = (): Failure => fail("not-found", {}, { detail: "no profile has this id" });

/** The failure of a session that asks for a profile that another has. */
export const profileInUse = (sessionId: string): Failure =>
  fail("profile-in-use", { active_session_id: sessionId }, { detail: `the session ${sessionId} has the profile` });

/** Reserves a profile for a session whose row is inserted in the same transaction. The account is locked. */
export async function reserveProfile(
  tx: Tx,
  { profileId, accountId, tier, runtime }: ProfileWish,
): Promise<ProfileReservation> {
  const profile = await lockProfile(tx, profileId, accountId);
  if (!profile) throw noProfile();
  if (profile.engine !== null && profile.engine !== engineOf(runtime)) {
    const detail = `the profile belongs to ${profile.engine}, which ${runtime} cannot read`;
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
  const detail = `the account's profiles take ${counted(used, "byte")} of the ${cap} that it may have: delete one, or leave profile_id out`;
  throw fail("storage-quota-exceeded", { used_bytes: used, cap_bytes: cap, tier: tier.name }, { detail });
}
