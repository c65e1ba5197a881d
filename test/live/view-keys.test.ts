import { afterAll, beforeAll, expect, test } from "vitest";
import { transferKey } from "../../src/identity/api-keys/store.ts";
import { hashSecret } from "../../src/platform/secrets/secrets.ts";
import { admitPerson } from "../../src/sessions/view-links/one-viewer.ts";
import { insertViewLink } from "../../src/sessions/view-links/store.ts";
import { viewKeyBearers, viewKeyText } from "../../src/sessions/view-links/view-keys.ts";
import { type BearerScene, startBearerScene } from "../support/bearer-scene.ts";
import { clockAt } from "../support/clock-at.ts";

const minute = 60_000;
const madeAt = Date.now();

let now = madeAt;
let scene: BearerScene;
beforeAll(async () => {
  scene = await startBearerScene(
    viewKeyBearers,
    clockAt(() => now),
  );
});
afterAll(() => scene?.[Symbol.asyncDispose]());

/** Creates a link for a minute by an API key; `forOne` limits the link to one person. */
async function makeLink(keyExpiresAt?: Date, forOne: { client_id?: string; opens_until?: Date } = {}) {
  const { app } = scene.running;
  const { sessionId, keyId } = await scene.makeSession(keyExpiresAt);
  const token = { id: app.ids.next("vln"), secret: viewKeyText.newSecret() };
  await app.db.transaction((tx) =>
    insertViewLink(tx, {
      id: token.id,
      session_id: sessionId,
      made_by: keyId,
      secret_hash: hashSecret(token.secret),
      name: "Ada",
      control: true,
      expires_at: new Date(madeAt + minute),
      ...forOne,
    }),
  );
  return { bearer: scene.bearers.read(`Bearer ${viewKeyText.write(token)}`), sessionId, keyId };
}

test("a link opens its session until it expires, which ends its connections", async () => {
  const { bearers } = scene;
  const { bearer, sessionId } = await makeLink();
  const grant = { sessionId, scopes: new Set(["sessions:read"]), mayControl: true, name: "Ada" };
  expect(await bearers.lookUp(bearer)).toMatchObject(grant);
  const verdicts: unknown[] = [];
  const unwatch = bearers.watch(bearer, (verdict) => verdicts.push(verdict));
  now = madeAt + minute;
  await expect(bearers.lookUp(bearer)).rejects.toMatchObject({ slug: "expired-key" });
  await expect.poll(() => verdicts.at(-1), { timeout: 10_000 }).toMatchObject({ failure: { slug: "expired-key" } });
  unwatch();
  now = madeAt;
});

test("a link for one person opens within its time, and then only for its first viewer", async () => {
  const { bearers, running } = scene;
  const { app } = running;
  const clock = clockAt(() => now);
  const forOne = { client_id: "ada", opens_until: new Date(madeAt + 20_000) };
  const { bearer: unused } = await makeLink(undefined, forOne);
  const { bearer } = await makeLink(undefined, forOne);
  const principal = await bearers.lookUp(bearer);
  expect(principal.person?.clientId).toBe("ada");
  const enter = (viewerKey: string) => admitPerson({ ...app, clock }, { principal }, viewerKey);
  const entries = await Promise.allSettled(["one", "other", "third"].map(enter));
  expect(entries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  const winner = ["one", "other", "third"].find((_, index) => entries[index]?.status === "fulfilled") ?? "";
  now = madeAt + 20_000;
  expect(await bearers.lookUpFresh(bearer)).toMatchObject({ person: { clientId: "ada" } });
  await expect(enter(winner)).resolves.toBeUndefined();
  await expect(enter("late")).rejects.toMatchObject({ slug: "expired-key" });
  await expect(bearers.lookUpFresh(unused)).rejects.toMatchObject({ slug: "expired-key" });
  now = madeAt;
});

test("a link loses control when its key loses the scope", async () => {
  const { bearers, running } = scene;
  const { bearer, keyId } = await makeLink();
  expect(await bearers.lookUpFresh(bearer)).toMatchObject({ mayControl: true });
  const cut = { createdBy: null, scopes: ["sessions:read"] };
  await running.app.db.transaction((tx) => transferKey(tx, keyId, cut));
  expect(await bearers.lookUpFresh(bearer)).toMatchObject({ mayControl: false });
});

test("a link ends with the key that created it", async () => {
  const { bearers, running } = scene;
  const { bearer, keyId } = await makeLink();
  await bearers.lookUp(bearer);
  await running.app.db.transaction((tx) => running.app.apiKeys.revoke(tx, keyId));
  await expect(bearers.lookUpFresh(bearer)).rejects.toMatchObject({ slug: "revoked-key" });
  const ending = await makeLink(new Date(madeAt - 1));
  await expect(bearers.lookUp(ending.bearer)).rejects.toMatchObject({ slug: "expired-key" });
});
