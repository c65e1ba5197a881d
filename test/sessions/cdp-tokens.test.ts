import { afterAll, beforeAll, expect, test } from "vitest";
import { hashSecret } from "../../src/platform/secrets/secrets.ts";
import { cdpTokenBearers, cdpTokenText, insertCdpToken } from "../../src/sessions/cdp/cdp-tokens.ts";
import { type BearerScene, startBearerScene } from "../support/bearer-scene.ts";
import { clockAt } from "../support/clock-at.ts";

const hour = 3_600_000;
const madeAt = Date.now();

let now = madeAt;
let scene: BearerScene;
beforeAll(async () => {
  scene = await startBearerScene(
    cdpTokenBearers,
    clockAt(() => now),
  );
});
afterAll(() => scene?.[Symbol.asyncDispose]());

/** Creates a session's token by an account's key. */
async function makeToken(keyExpiresAt?: Date) {
  const { app } = scene.running;
  const { sessionId, keyId } = await scene.makeSession(keyExpiresAt);
  const token = { id: app.ids.next("cdp"), secret: cdpTokenText.newSecret() };
  const opensUntil = new Date(madeAt + hour);
  const kept = { id: token.id, sessionId, createdBy: keyId, secretHash: hashSecret(token.secret), opensUntil };
  await app.db.transaction((tx) => insertCdpToken(tx, kept));
  const bearer = scene.bearers.read(`Bearer ${cdpTokenText.write(token)}`);
  return { bearer, sessionId, keyId, keys: app.apiKeys };
}

test("accepts a token for an hour, and keeps connections opened with it", async () => {
  const { bearers } = scene;
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

test("ends a token with the API key that created it", async () => {
  const { bearers, running } = scene;
  const { bearer, keyId, keys } = await makeToken();
  await bearers.lookUp(bearer);
  await running.app.db.transaction((tx) => keys.revoke(tx, keyId));
  await expect(bearers.lookUpFresh(bearer)).rejects.toMatchObject({ slug: "revoked-key" });
  const ending = await makeToken(new Date(madeAt - 1));
  await expect(bearers.lookUp(ending.bearer)).rejects.toMatchObject({ slug: "expired-key" });
});
