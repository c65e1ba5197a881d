import { sql } from "kysely";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cryptoOrders } from "../../src/billing/order-feature.ts";
import { readTranscriptEntries } from "../../src/events/transcript.ts";
import { transcript } from "../../src/events/transcript-feature.ts";
import { lowestId } from "../../src/platform/ids.ts";
import { insertFileLink, sweepFileLinks } from "../../src/sessions/files/link-store.ts";
import { status } from "../../src/status/feature.ts";
import { webhooks } from "../../src/webhooks/feature.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

const minute = 60_000;
const day = 1_440 * minute;

let running: SessionsApp;
let accountId: string;
beforeAll(async () => {
  running = await startSessionsApp();
  accountId = (await running.caller())().principal.accountId;
});
afterAll(() => running?.[Symbol.asyncDispose]());

/** Kind of rows that are deleted some time after a timestamp in them. */
interface KeptRows {
  readonly keptFor: number;
  /** Inserts a row whose retention starts at a time. */
  insert(id: string, at: Date): Promise<unknown>;
  findIds(): Promise<{ id: string }[]>;
  sweep(): Promise<unknown>;
}

const subscriber = { asked: [], end_token: Buffer.alloc(1), confirm_hash: null };

const kinds: Readonly<Record<string, (app: SessionsApp["app"]) => KeptRows>> = {
  "stores of interrupted saves": ({ db, profiles }) => ({
    keptFor: 5 * minute,
    async insert(id, at) {
      await db.sql
        .insertInto("profiles")
        .values({
          id,
          account_id: accountId,
          name: id,
          labels: "{}",
          description: null,
          created_at: at,
          updated_at: at,
        })
        .execute();
      await db.sql
        .insertInto("profile_stores")
        .values({ id, profile_id: id, data_key: Buffer.alloc(1), created_at: at })
        .execute();
    },
    findIds: () => db.sql.selectFrom("profile_stores").select("id").execute(),
    sweep: () => Promise.all(profiles.saves.jobs.map(({ run }) => run())),
  }),
  "mails that could not be sent": ({ db, mailer }) => ({
    keptFor: 30 * day,
    insert: (id, at) =>
      db.sql
        .insertInto("mails")
        .values({ id, user_id: null, kind: "security", content: Buffer.alloc(1), created_at: at })
        .execute(),
    findIds: () => db.sql.selectFrom("mails").select("id").execute(),
    sweep: () => Promise.all(mailer.jobs.map(({ run }) => run())),
  }),
  "quotes that have lapsed": (app) => ({
    keptFor: 30 * day,
    insert: (id, at) =>
      app.db.sql
        .insertInto("crypto_orders")
        .values({
          id,
          account_id: accountId,
          status: "quoted",
          tier: "personal",
          months: 1,
          currency: "USD",
          amount_cents: 1,
          crypto_currency: "btc",
          crypto_amount: "1",
          exchange_rate: "1",
          created_at: at,
          updated_at: at,
          quote_expires_at: at,
          livemode: false,
          sandbox: true,
        })
        .execute(),
    findIds: () => app.db.sql.selectFrom("crypto_orders").select("id").execute(),
    async sweep() {
      const processors = { ...app.processors, crypto: undefined };
      const { jobs = [] } = cryptoOrders.create?.({ ...app, processors, metrics: new Registry() }) ?? {};
      await Promise.all(jobs.map(({ run }) => run()));
    },
  }),
  "incidents that have ended": (app) => ({
    keptFor: 26 * 31 * day,
    insert: (id, at) =>
      app.db.sql
        .insertInto("status_incidents")
        .values({
          id,
          origin: "operator",
          title: "A disk",
          health: "degraded",
          components: ["api"],
          started_at: at,
          resolved_at: at,
          changed_at: at,
          told_at: at,
        })
        .execute(),
    findIds: () => app.db.sql.selectFrom("status_incidents").select("id").execute(),
    sweep: () => Promise.all((status.create?.(app).jobs ?? []).map(({ run }) => run())),
  }),
  "transcript entries": (app) => ({
    keptFor: 90 * day,
    insert: (id, at) =>
      app.db.transaction(async (tx) => {
        // The agent session of the entry need not exist.
        await sql`set local session_replication_role = replica`.execute(tx.sql);
        const row = { id, agent_session_id: "ags_1", turn_id: null, entry: "{}", created_at: at };
        await tx.sql.insertInto("transcript_entries").values(row).execute();
      }),
    findIds: () => app.db.sql.selectFrom("transcript_entries").select("id").execute(),
    sweep: () => Promise.all((transcript.create?.(app).jobs ?? []).map(({ run }) => run())),
  }),
  "webhook deliveries": (app) => ({
    keptFor: 30 * day,
    insert: (eventId, at) =>
      app.db.sql
        .insertInto("webhook_deliveries")
        .values({
          id: lowestId("dlv", at.getTime()),
          endpoint_id: "whk_1",
          account_id: accountId,
          event_id: eventId,
          event_type: "session.created",
          subject: "ses_1",
        })
        .execute(),
    findIds: () => app.db.sql.selectFrom("webhook_deliveries").select("event_id as id").execute(),
    sweep: () => Promise.all((webhooks.create?.(app).jobs ?? []).map(({ run }) => run())),
  }),
  "expired links to files": ({ db }) => ({
    keptFor: 60 * minute,
    insert: (id, at) =>
      db.transaction(async (tx) => {
        // The session of the link need not exist.
        await sql`set local session_replication_role = replica`.execute(tx.sql);
        await insertFileLink(tx, {
          id,
          sessionId: "ses_1",
          createdBy: "key_1",
          name: "a.txt",
          method: "get",
          secretHash: Buffer.alloc(32),
          expiresAt: at,
        });
      }),
    findIds: () => db.sql.selectFrom("file_links").select("id").execute(),
    sweep: () => sweepFileLinks(db),
  }),
  "subscriptions that were never confirmed": ({ db, status: { subscriptions } }) => ({
    keptFor: day,
    insert: (id, at) =>
      db.sql
        .insertInto("status_subscribers")
        .values({ ...subscriber, id, email: id, end_hash: Buffer.from(id), confirm_until: at })
        .execute(),
    findIds: () => db.sql.selectFrom("status_subscribers").select("id").execute(),
    sweep: () => subscriptions.sweep(),
  }),
  "subscriptions that have ended": ({ db, status: { subscriptions } }) => ({
    keptFor: 30 * day,
    insert: (id, at) =>
      db.sql
        .insertInto("status_subscribers")
        .values({
          ...subscriber,
          id,
          email: id,
          end_hash: Buffer.from(id),
          confirm_until: new Date(0),
          confirmed_at: at,
          ended_at: at,
        })
        .execute(),
    findIds: () => db.sql.selectFrom("status_subscribers").select("id").where("ended_at", "is not", null).execute(),
    sweep: () => subscriptions.sweep(),
  }),
};

test.each(Object.keys(kinds))("%s are deleted when their retention ends and not a minute earlier", async (kind) => {
  const rows = kinds[kind]?.(running.app);
  if (!rows) throw new Error(`there is no ${kind}`);
  const { keptFor, insert, findIds, sweep } = rows;
  await insert(`${kind} old`, new Date(Date.now() - keptFor - minute));
  await insert(`${kind} young`, new Date(Date.now() - keptFor + minute));
  await sweep();
  expect(await findIds()).toEqual([{ id: `${kind} young` }]);
});

test("a transcript page starts with the oldest entry if the cursor's entry is deleted", async () => {
  const { insert, sweep } = kinds["transcript entries"]?.(running.app) ?? {};
  await insert?.("evt_old", new Date(0));
  await insert?.("evt_young", new Date());
  await sweep?.();
  const read = (after?: string) =>
    readTranscriptEntries(running.app.db, { agentSessionId: "ags_1", after, limit: 100 });
  const left = await read();
  expect(left).not.toEqual([]);
  expect(await read("evt_old")).toEqual(left);
});
