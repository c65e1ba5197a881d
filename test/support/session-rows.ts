import { sql } from "kysely";
import type { Database } from "../../src/platform/postgres/database.ts";
import { insertSession } from "../../src/sessions/store.ts";

/** Session to insert. */
interface SessionRowChoice {
  readonly id: string;
  readonly accountId: string;
  readonly workerId: string;
  readonly status: "live" | "destroyed" | "errored";
}

/** Inserts a session without a browser, which holds a slot of its worker. */
export async function insertSessionRow(db: Database, { id, accountId, workerId, status }: SessionRowChoice) {
  const limits = { timeoutSeconds: 60, idleTimeoutSeconds: 60 };
  const viewport = { width: 1, height: 1, deviceScaleFactor: 1 };
  const defaults = { profileId: undefined, locale: undefined, timezone: undefined, labels: {}, options: {} };
  const browser = { archetype: "desktop-chrome", runtime: "chromium", viewport, logs: "off" } as const;
  await db.transaction(async (tx) => {
    await insertSession(tx, { id, accountId, tier: "free", workerId, ...browser, ...defaults, ...limits });
    const end = status !== "live" && { ended_at: sql<Date>`now()`, ended_reason: "destroyed" as const };
    await tx.sql
      .updateTable("sessions")
      .set({ status, ...end })
      .where("id", "=", id)
      .execute();
  });
}
