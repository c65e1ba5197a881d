import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { insertTurn } from "../../../src/agents/turns/store.ts";
import { type SessionsApp, startSessionsApp } from "../../support/sessions-app.ts";
import { createTestClock } from "../../support/test-clock.ts";

const clock = createTestClock();
const periods: number[] = [];
let running: SessionsApp;
let accountId: string;
beforeAll(async () => {
  const every = (milliseconds: number, run: () => void) => {
    periods.push(milliseconds);
    return clock.every(milliseconds, run);
  };
  running = await startSessionsApp({}, { clock: { ...clock, every } });
  accountId = (await running.caller())().principal.accountId;
});
afterAll(() => running?.[Symbol.asyncDispose]());

/** Inserts a turn whose gateway, with the key of the header, sent its last heartbeat some milliseconds ago. */
const insert = (id: string, age: number) =>
  running.app.db.transaction(async (tx) => {
    // The agent session of the turn need not exist.
    await sql`set local session_replication_role = replica`.execute(tx.sql);
    const [agentSession, now] = [`ags_${id}`, Date.now()];
    return insertTurn(tx, {
      id,
      agent_session_id: agentSession,
      account_id: accountId,
      session_id: "ses_1",
      credential: "header",
      provider: "anthropic",
      model: "claude-test",
      limits: "{}",
      created_at: new Date(now),
      beat_at: new Date(now - age),
    });
  });

test("a turn ends as failed 8 seconds after the last heartbeat of its gateway", async () => {
  await insert("trn_held", 4_000);
  await insert("trn_lost", 12_000);
  await running.app.turns.sweep.run();
  const { rows } = await sql`select id, status from agent_turns order by id`.execute(running.app.db.sql);
  expect(rows).toEqual([
    { id: "trn_held", status: "queued" },
    { id: "trn_lost", status: "failed" },
  ]);
});

test("a gateway sends at least three heartbeats of a turn until the turn would end", async () => {
  const turn = await insert("trn_new", 0);
  periods.splice(0);
  await running.app.db.transaction(async (tx) => running.app.turns.begin(tx, turn, "a key"));
  expect(Math.max(...periods)).toBeLessThanOrEqual(8_000 / 3);
});
