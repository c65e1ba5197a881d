import type { Log } from "../base/log.ts";
import { type ProfileDirectory, packProfile } from "./profile-files.ts";
import { type ProfileRecord, readRecord } from "./profile-record.ts";
import { ProfileShelf } from "./profile-shelf.ts";

/** Packs the directory of a browser that has ended onto the shelf of its worker; a failure is shelved as such. */
export async function saveProfile(
  shelf: ProfileShelf,
  directory: ProfileDirectory,
  record: ProfileRecord,
  log: Log,
): Promise<void> {
  const { sessionId, placementEpoch, profileId, version, engine, browserMajor, cookies } = record;
  const profile = { sessionId, placementEpoch, profileId, version, engine };
  try {
    await packProfile(directory, { format: 1, engine, browserMajor, cookies }, shelf.unfinishedOf(profile));
    await shelf.shelve({ ...profile, failure: "" });
  } catch (error) {
    log.warn({ err: error, session: sessionId, profile: profileId }, "a profile could not be packed");
    const failure = error instanceof Error ? error.message : "it could not be packed";
    await shelf.shelve({ ...profile, failure: failure.slice(0, 500) });
  }
}

/**
 * Saves the profile that a dead worker's session has left in a slot, if it had one, onto the shelf of that worker. What
 * goes wrong is told and nothing more: the slot has to be cleared all the same.
 */
export async function salvageProfile(directory: ProfileDirectory, launchRecord: string, log: Log): Promise<void> {
  const record = await readRecord(launchRecord);
  if (!record) return;
  const { sessionId: session, profileId: profile } = record;
  try {
    const shelf = new ProfileShelf(record.dataDir, record.index);
    await shelf.makeDirectory();
    await saveProfile(shelf, directory, record, log);
    log.info({ session, profile }, "the profile of a lost session was put on the shelf");
  } catch (error) {
    log.error({ err: error, session, profile }, "the profile of a lost session could not be saved");
  }
}
