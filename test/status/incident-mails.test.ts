import { expect, test } from "vitest";
import { startSessionsApp } from "../support/sessions-app.ts";

const minute = 60_000;

test("subscribers receive a mail about a change of an incident 15 minutes after the previous mail", async () => {
  await using running = await startSessionsApp();
  const { db, status } = running.app;
  const now = Date.now();
  const change = async (id: string, toldBefore: number) => {
    const told = new Date(now - toldBefore);
    const incident = { id, origin: "operator", title: "A disk", health: "degraded" } as const;
    const times = { started_at: told, resolved_at: null, changed_at: new Date(now), told_at: told };
    await db.sql
      .insertInto("status_incidents")
      .values({ ...incident, components: ["api"], ...times })
      .execute();
  };
  await change("told 14 minutes ago", 14 * minute);
  await change("told 16 minutes ago", 16 * minute);
  await status.mails.job.run();
  const told = db.sql.selectFrom("status_incidents").select("id").where("told_at", ">=", new Date(now));
  expect(await told.execute()).toEqual([{ id: "told 16 minutes ago" }]);
});
