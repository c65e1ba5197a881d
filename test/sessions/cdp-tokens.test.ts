import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { createKey } from "../../src/api-keys/api-keys.ts";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { type Bearers, createBearers } from "../../src/identity/bearers.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { hashSecret } from "../../src/platform/secrets/secrets.ts";
import { cdpTokenBearers, cdpTokenText, insertCdpToken } from "../../src/sessions/cdp-tokens.ts";
import { silentLog } from "../support/database.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

const hour = 3_600_000;
const madeAt = Date.now();

let now = madeAt;
let running: SessionsApp;
let bearers: Bearers;
beforeAll(async () => {
  running = await startSessionsApp();
  await running.worker();
  const { db, bus } = running.app;
  const clock = { now: () => now };
  bearers = createBearers({ kinds: [cdpTokenBearers(db)], bus, clock, log: silentLog, registry: createMetrics() });
  bearers.start();
});
afterAll(async () => {
  await bearers?.stop();
  await running?.[Symbol.asyncDispose]();
});

/** A token of a session, made by a key of an account. */
async function makeToken(keyExpiresAt?: Date) {
  const { app, sessions } = running;
  const accountId = app.ids.next("acc");
  const key = await app.db.transaction(async (tx) => {
    await insertAccount(tx, { id: accountId, name: "Test", tier: "enterprise" });
    return createKey(tx, app.ids, { accountId, name: "test", ...(keyExpiresAt && { expiresAt: keyExpiresAt }) });
  });
  const call = await running.caller();
  const { id: sessionId } = await sessions.create(call(), create(CreateSessionRequestSchema, {}));
  const token = { id: app.ids.next("cdp"), secret: cdpTokenText.newSecret() };
  const opensUntil = new Date(madeAt + hour);
  const kept = { id: token.id, sessionId, madeBy: key.id, secretHash: hashSecret(token.secret), opensUntil };
  await app.db.transaction((tx) => insertCdpToken(tx, kept));
  const bearer = bearers.read(`Bearer ${cdpTokenText.write(token)}`);
  return { bearer, sessionId, keyId: key.id, keys: app.apiKeys };
}

test("a token opens its session for an hour, and what it has opened lasts", async () => {
  const { bearer, sessionId } = await makeToken();
  expect(await bearers.lookUp(bearer)).toMatchObject({ sessionId, scopes: new Set(["sessions:write"]) });
  const verdicts: unknown[] = [];
  const unwatch = bearers.watch(bearer, (verdict) => verdicts.push(verdict));
  now = madeAt + hour;
  await expect(bearers.lookUp(bearer)).rejects.toMatchObject({ slug: "expired-key" });
  await expect.poll(() => verdicts.at(-1), { timeout: 10_000 }).toMatchObject({ principal: { sessionId } });
  unwatch();
  now = madeAt;
});

test("a token ends with the key that has made it", async () => {
  const { bearer, keyId, keys } = await makeToken();
  await bearers.lookUp(bearer);
  await running.app.db.transaction((tx) => keys.revoke(tx, keyId));
  await expect(bearers.lookUpAfresh(bearer)).rejects.toMatchObject({ slug: "revoked-key" });
  const ending = await makeToken(new Date(madeAt - 1));
  await expect(bearers.lookUp(ending.bearer)).rejects.toMatchObject({ slug: "expired-key" });
});
