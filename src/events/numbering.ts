import type { Bus } from "../platform/bus.ts";
import type { Database, NamedStatement } from "../platform/postgres/database.ts";

/** What one call numbers at most: see the migration that made the function. */
const batch = 1_000;

const numberStatement: NamedStatement = { name: "events-number", text: "select number_events() as numbered" };

/**
 * Gives events their numbers once they are committed, then wakes all who read. Readers go by number alone: whatever
 * transaction is still open, and be it somebody else's in the same server, keeps nobody from what is committed.
 */
export type Numbering = () => Promise<void>;

/** Makes the numbering: it numbers all that is committed when it is called. Calls during a pass share the next one. */
export function createNumbering(db: Database, bus: Bus): Numbering {
  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  async function pass(): Promise<void> {
    for (;;) {
      const [row] = await db.named<{ numbered: number }>(numberStatement, []);
      const numbered = row?.numbered ?? 0;
      if (numbered > 0) bus.publish("events", "");
      if (numbered < batch) return;
    }
  }

  return function number(): Promise<void> {
    if (!current) {
      current = pass().finally(() => {
        current = undefined;
      });
      return current;
    }
    next ??= current
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return number();
      });
    return next;
  };
}
