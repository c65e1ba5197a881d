import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createSealer } from "../../src/platform/secrets/secrets-sealer.ts";
import { endTokenOf } from "../../src/status/subscriptions.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

const minute = 60_000;

test("subscribers receive an e-mail about a change of an incident 15 minutes after the previous e-mail", async () => {
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
  await status.mails.task.run();
  const told = db.sql.selectFrom("status_incidents").select("id").where("told_at", ">=", new Date(now));
  expect(await told.execute()).toEqual([{ id: "told 16 minutes ago" }]);
});

test("a mail to a subscriber whose unsubscribe link cannot be decrypted has a new link", async () => {
  await using running = await startSessionsApp();
  const { db, sealer, status } = running.app;
  const lost = createSealer({ keys: [{ id: "lost", secret: randomBytes(32) }], file: undefined });
  const end_token = lost.seal(Buffer.from("token"), { accountId: "status", purpose: "unsubscribe" });
  const row = { id: "sub_1", email: "reader@example.com", asked: [], end_hash: Buffer.alloc(32), end_token };
  const until = { confirm_hash: null, confirm_until: new Date() };
  await db.sql
    .insertInto("status_subscribers")
    .values({ ...row, ...until, confirmed_at: new Date() })
    .execute();
  const token = await db.transaction((tx) => endTokenOf(tx, sealer, row));
  const stored = db.sql.selectFrom("status_subscribers").select(["id", "end_token"]).executeTakeFirstOrThrow();
  expect(await db.transaction(async (tx) => endTokenOf(tx, sealer, await stored))).toBe(token);
  expect(await status.subscriptions.unsubscribe(token)).toMatchObject({ stage: "unsubscribed" });
});
