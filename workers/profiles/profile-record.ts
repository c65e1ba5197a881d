import { readFile, rename, writeFile } from "node:fs/promises";
import { profileRecordOf } from "../isolation/slot-block.ts";
import type { Cookie } from "./profile-cookies.ts";
import type { UsedProfile } from "./profile-store.ts";

/**
 * Record of a profile that a session uses, in a file that the browser cannot write. After a crash of the worker,
 * another worker saves the profile with this record.
 */
export interface ProfileRecord extends UsedProfile {
  /** DATA_DIR of the worker that stores the profile. */
  readonly dataDir: string;
  /** Index of the worker that stores the profile. */
  readonly index: number;
  readonly browserMajor: number;
  /** Cookies at the last reading, up to 10 s old. */
  readonly cookies: readonly Cookie[];
}

/** Writes a slot's profile record atomically. */
export async function writeRecord(launchRecord: string, record: ProfileRecord): Promise<void> {
  const path = profileRecordOf(launchRecord);
  const text = JSON.stringify(record, (_key, value) => (typeof value === "bigint" ? String(value) : value));
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Returns a slot's profile record, or undefined if there is none or it cannot be read. */
export async function readRecord(launchRecord: string): Promise<ProfileRecord | undefined> {
  try {
    // Unchecked cast: only `writeRecord` can write this file.
    const record = JSON.parse(await readFile(profileRecordOf(launchRecord), "utf8")) as ProfileRecord;
    return { ...record, placementEpoch: BigInt(record.placementEpoch), version: BigInt(record.version) };
  } catch {
    return undefined;
  }
}
