import type { Bus } from "../platform/bus.ts";
import type { Database, NamedStatement } from "../platform/postgres/database.ts";

/** Maximum number of events per call of number_events. */
const batch = 1_000;

const numberStatement: NamedStatement = { name: "events-number", text: "select number_events() as numbered" };

/**
 * Numbers committed events, then notifies readers. Readers follow numbers only, so an open transaction never hides
 * committed events.
 */
export type Numbering = () => Promise<void>;

/** Creates the numbering. Each call covers all events committed before it. Calls during a pass share the next pass. */
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
