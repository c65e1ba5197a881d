import type { Clock } from "../platform/clock.ts";
import type { Database } from "../platform/postgres/database.ts";
import { deleteBelongings, deletePeople, findDueDeletions } from "./store.ts";

/** Accounts that are deleted in one turn. */
const atOnce = 100;

/** Milliseconds after the end of the week: clocks of gateways differ, and who restores an account at the last moment has all of it. */
const margin = 3_600_000;

/** Deletes the accounts whose week is over. What one turn has not done, the next one does: each step can be done again. */
export async function sweepDeleted({ db, clock }: { readonly db: Database; readonly clock: Clock }): Promise<void> {
  for (const accountId of await findDueDeletions(db, new Date(clock.now() - margin), atOnce)) {
    await deleteBelongings(db, accountId);
    await db.transaction((tx) => deletePeople(tx, accountId));
  }
}
