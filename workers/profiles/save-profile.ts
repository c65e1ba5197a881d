import type { Log } from "../base/log.ts";
import { type ProfileDirectory, packProfile } from "./profile-files.ts";
import { type ProfileRecord, readRecord } from "./profile-record.ts";
import { ProfileStore } from "./profile-store.ts";

/** Packs the profile of an ended browser into its worker's store. If packing fails, stores the failure. */
export async function saveProfile(
  profileStore: ProfileStore,
  directory: ProfileDirectory,
  record: ProfileRecord,
  log: Log,
): Promise<void> {
  const { sessionId, placementEpoch, profileId, version, engine, browserMajor, cookies } = record;
  const profile = { sessionId, placementEpoch, profileId, version, engine };
  try {
    await packProfile(directory, { format: 1, engine, browserMajor, cookies }, profileStore.unfinishedOf(profile));
    await profileStore.add({ ...profile, failure: "" });
  } catch (error) {
    log.warn({ err: error, session_id: sessionId, profile_id: profileId }, "failed to pack a profile");
    const failure = error instanceof Error ? error.message : "the profile could not be packed";
    await profileStore.add({ ...profile, failure: failure.slice(0, 500) });
  }
}

/**
 * Saves the profile that a dead worker's session left in a slot, if any, into that worker's store. Errors are only
 * logged, because the slot must be cleared in any case.
 */
export async function recoverProfile(directory: ProfileDirectory, launchRecord: string, log: Log): Promise<void> {
  const record = await readRecord(launchRecord);
  if (!record) return;
  const ids = { session_id: record.sessionId, profile_id: record.profileId };
  try {
    const profileStore = new ProfileStore(record.dataDir, record.index);
    await profileStore.makeDirectory();
    await saveProfile(profileStore, directory, record, log);
    log.info(ids, "recovered the profile of a lost session");
  } catch (error) {
    log.error({ err: error, ...ids }, "failed to recover the profile of a lost session");
  }
}
