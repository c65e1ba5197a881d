import { readFile, rename, writeFile } from "node:fs/promises";
import { profileRecordOf } from "../isolation/slot-block.ts";
import type { Cookie } from "./profile-manifest.ts";
import type { UsedProfile } from "./profile-shelf.ts";

/** What is noted of a profile beside the slot that uses it, where its browser cannot write: who finds it can save it. */
export interface ProfileRecord extends UsedProfile {
  /** DATA_DIR and index of the worker whose shelf it belongs on. */
  readonly dataDir: string;
  readonly index: number;
  readonly browserMajor: number;
  /** As they were a few seconds ago. */
  readonly cookies: readonly Cookie[];
}

/** Writes a slot's record so that a crash leaves the old or the new one. */
export async function writeRecord(launchRecord: string, record: ProfileRecord): Promise<void> {
  const path = profileRecordOf(launchRecord);
  const text = JSON.stringify(record, (_key, value) => (typeof value === "bigint" ? String(value) : value));
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Reads a slot's record; undefined when its session had no profile. */
export async function readRecord(launchRecord: string): Promise<ProfileRecord | undefined> {
  try {
    // The boundary where JSON becomes what `writeRecord` wrote: nobody else can write here.
    const record = JSON.parse(await readFile(profileRecordOf(launchRecord), "utf8")) as ProfileRecord;
    return { ...record, placementEpoch: BigInt(record.placementEpoch), version: BigInt(record.version) };
  } catch {
    return undefined;
  }
}
