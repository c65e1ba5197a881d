import type { PlatformParts } from "../platform/platform-parts.ts";
import { anonymizeAccount, deleteAccountRows, findDueDeletions } from "./store.ts";

/** Maximum number of accounts per run. */
const atOnce = 100;

/** Milliseconds to wait after the grace period. Clocks differ, and a restore in the last minute must find all data. */
const marginMs = 3_600_000;

/**
 * Deletes accounts after their grace period. Each step can be repeated, so the next run completes an interrupted run.
 */
export async function sweepDeleted({ db, clock }: Pick<PlatformParts, "db" | "clock">): Promise<void> {
  for (const accountId of await findDueDeletions(db, new Date(clock.now() - marginMs), atOnce)) {
    await deleteAccountRows(db, accountId);
    await db.transaction((tx) => anonymizeAccount(tx, accountId));
  }
}
