import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sweepDeleted } from "../../src/deletion/sweep.ts";
import { AccountService } from "../../src/gen/pilothouse/v1/account_pb.ts";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { DeletionService } from "../../src/gen/pilothouse/v1/deletion_pb.ts";
import { TeamService } from "../../src/gen/pilothouse/v1/team_pb.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { FakeWorker } from "../support/fake-worker.ts";
import { sampledTransports } from "../support/long-test.ts";
import { joinTeam, mailAbout, type Person, tokenOfMail } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { billingUntil, pressPortal, subscribe } from "../support/sandbox.ts";
import { smallRecipe } from "../support/small-recipe.ts";
import type { Outcome, TransportName } from "../support/transport-calls.ts";
import { causeEvent, register, startEndpoints } from "../webhooks/scene.ts";

const { deleteAccount, restoreAccount: restore } = DeletionService.method;
const { logIn, signUp } = AuthService.method;
const { acceptInvite } = TeamService.method;
const hour = 3_600_000;
const day = 24 * hour;
const workerToken = "a token of the tests alone";

let gateway: PeopleGateway;
let worker: FakeWorker;
beforeAll(async () => {
  gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken, WEBHOOK_ALLOW: "127.0.0.1" });
  worker = new FakeWorker({ control: `unix:${gateway.app.config.dataDir}/fleet.sock`, token: workerToken, slots: 10 });
  await worker.start();
}, 60_000);
afterAll(async () => {
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
});

type Method = Parameters<PeopleGateway["call"]>[1];
const call = (method: Method, request: Record<string, string>, token?: string): Promise<Outcome> =>
  gateway.call("REST", method, request, { token });
const use = async (token: string): Promise<string> => (await call(AccountService.method.getMe, {}, token)).slug;

/** Deletes the owner's account. Returns the token that restores it. */
async function close(
  { accessToken: token, password, email }: Person,
  transport: TransportName = "REST",
): Promise<string> {
  const { slug, answer } = await gateway.call(transport, deleteAccount, { password }, { token });
  expect(slug).toBe("");
  expect(Math.abs(Date.parse(answer.deletes_at) - gateway.now() - 7 * day)).toBeLessThan(60_000);
  const [link = ""] = (await mailAbout(gateway.mailbox, email, "Your account was deleted")).links;
  return link.split("#")[1] ?? "";
}

describe.each(sampledTransports)("over %s", (transport) => {
  test("an owner deletes the account and restores it within a week, with its keys and logins", async () => {
    const owner = await gateway.signUp();
    const { key } = (await owner.rest("/v1/api-keys", { name: "a program" })).body;
    const token = await close(owner, transport);
    expect([await use(owner.accessToken), await use(key)]).toEqual(["revoked-key", "revoked-key"]);
    expect((await call(logIn, { email: owner.email, password: owner.password })).slug).toBe("forbidden");
    const restored = await gateway.call(transport, restore, { token });
    expect(restored.answer).toEqual({ account_id: owner.accountId });
    expect([await use(owner.accessToken), await use(key)]).toEqual(["", ""]);
    await mailAbout(gateway.mailbox, owner.email, "Your account was restored");
    expect((await gateway.call(transport, restore, { token })).slug).toBe("invalid-auth-token");
  });

  test("only an owner with the password deletes an account", async () => {
    const owner = await gateway.signUp();
    const admin = await joinTeam(gateway.url, gateway.mailbox, owner.rest, "admin");
    const attempt = async (token: string | undefined, password: string) =>
      (await gateway.call(transport, deleteAccount, { password }, { token })).slug;
    expect(await attempt(owner.accessToken, "not the right password")).toBe("invalid-credentials");
    expect(await attempt(admin.accessToken, admin.password)).toBe("forbidden");
    expect(await attempt(gateway.app.developerKey, owner.password)).toBe("forbidden");
    expect(await use(owner.accessToken)).toBe("");
  });
});

test.each(["resume", "lower", "fail"])(
  "a deleted account makes no more payments by card (after the action %s)",
  async (action) => {
    const owner = await gateway.signUp();
    await subscribe(owner.rest);
    await pressPortal(owner.rest, action);
    const subscription = async () => {
      const select = gateway.app.db.sql.selectFrom("card_subscriptions").select("status");
      return (await select.where("account_id", "=", owner.accountId).executeTakeFirstOrThrow()).status;
    };
    const is = (status: string) =>
      waitUntil(async () => (await subscription()) === status, { timeout: 10_000, every: 20 });
    expect(await is(action === "fail" ? "past_due" : "active")).toBe(true);
    const { key } = (await owner.rest("/v1/api-keys", { name: "a program" })).body;
    await close(owner);
    expect([await use(key), await is(action === "fail" ? "ended" : "cancelling")]).toEqual(["revoked-key", true]);
  },
);

test.each(["resume", "cancel"])(
  "a restored account has the same renewal state as before (after the action %s)",
  async (action) => {
    const owner = await gateway.signUp();
    await subscribe(owner.rest);
    await pressPortal(owner.rest, action);
    const before = action === "cancel" ? "cancelling" : "active";
    await billingUntil(owner.rest, ({ subscription }) => subscription.status === before);
    const token = await close(owner);
    const jobs = gateway.app.db.sql.selectFrom("jobs").select("id").where("kind", "=", "card-customer");
    const isIdle = async () => (await jobs.execute()).length === 0;
    expect(await waitUntil(isIdle, { timeout: 20_000, every: 20 })).toBe(true);
    await call(restore, { token });
    expect(await waitUntil(isIdle, { timeout: 20_000, every: 20 })).toBe(true);
    await billingUntil(owner.rest, ({ subscription }) => subscription.status === before);
  },
);

test("a deletion ends sessions and invites, and notifies the other members", async () => {
  const owner = await gateway.signUp({ accountName: "Engines" });
  const member = await joinTeam(gateway.url, gateway.mailbox, owner.rest);
  const session = (await owner.rest("/v1/sessions", {})).body.id;
  const guest = await gateway.signUp();
  await owner.rest("/v1/team/invites", { email: guest.email });
  const invite = await tokenOfMail(gateway.mailbox, guest.email);
  const { promise: hasEnded, resolve } = Promise.withResolvers<string>();
  const unsubscribe = gateway.app.bus.subscribe("session-ended", resolve);
  const token = await close(owner);
  expect(await hasEnded).toBe(session);
  unsubscribe();
  const told = await mailAbout(gateway.mailbox, member.email, "Your account was deleted");
  expect(told.links).toEqual([]);
  expect(told.text).toContain("Engines");
  expect(await use(member.accessToken)).toBe("revoked-key");
  expect((await call(acceptInvite, { token: invite }, guest.accessToken)).slug).toBe("invalid-auth-token");
  await call(restore, { token });
  const ended = (await owner.rest("/v1/sessions")).body.data.find(({ id }: Record<string, string>) => id === session);
  expect(ended).toMatchObject({ status: "destroyed" });
  expect(await use(member.accessToken)).toBe("");
});

test("an account is deleted once when two owners do so at once, and either restores it once", async () => {
  const owner = await gateway.signUp();
  const other = await joinTeam(gateway.url, gateway.mailbox, owner.rest, "admin");
  const members = (await owner.rest("/v1/team/members")).body.data;
  const { id } = members.find(({ user_id }: Record<string, string>) => user_id === other.userId);
  await owner.rest(`/v1/team/members/${id}`, { role: "owner" }, { method: "PATCH" });
  const attempts = [owner, other].map(({ accessToken, password }) => call(deleteAccount, { password }, accessToken));
  const slugs = (await Promise.all(attempts)).map(({ slug }) => slug).sort();
  expect(slugs).toEqual(["", "revoked-key"]);
  const tokens = [];
  for (const { email } of [owner, other]) {
    const [link = ""] = (await mailAbout(gateway.mailbox, email, "Your account was deleted")).links;
    tokens.push(link.split("#")[1] ?? "");
  }
  const restored = await Promise.all(tokens.map(async (token) => (await call(restore, { token })).slug));
  expect(restored.sort()).toEqual(["", "invalid-auth-token"]);
});

test("after a week the account and its exclusive members are erased, and the address can sign up again", async () => {
  const owner = await gateway.signUp();
  // A member who joins a team keeps a personal account.
  const member = await joinTeam(gateway.url, gateway.mailbox, owner.rest);
  expect((await owner.rest("/v1/profiles", { name: "Shop" })).status).toBe(201);
  expect((await owner.rest("/v1/recipes", smallRecipe)).status).toBe(201);
  const recipesLeft = () =>
    gateway.app.db.sql.selectFrom("recipes").select("id").where("account_id", "=", owner.accountId).execute();
  expect(await recipesLeft()).toHaveLength(1);
  const { key } = (await owner.rest("/v1/api-keys", { name: "a program" })).body;
  const token = await close(owner);
  gateway.pass(7 * day);
  expect((await call(restore, { token })).slug).toBe("invalid-auth-token");
  gateway.pass(hour / 2);
  await sweepDeleted(gateway.app);
  const again = { email: owner.email, password: owner.password };
  expect((await call(logIn, again)).slug).toBe("forbidden");
  gateway.pass(hour / 2);
  await sweepDeleted(gateway.app);
  expect(await use(key)).toBe("invalid-key");
  expect(await recipesLeft()).toEqual([]);
  expect((await call(logIn, again)).slug).toBe("invalid-credentials");
  expect((await call(signUp, again)).slug).toBe("");
  const { email, password } = member;
  expect((await call(logIn, { email, password })).slug).toBe("");
});

test("after a week the account's webhook deliveries are erased", async () => {
  await using endpoints = await startEndpoints();
  const owner = await gateway.signUp();
  const { accountId } = owner;
  const [kept, deleted] = [endpoints.url("/kept"), endpoints.url("/deleted")];
  const ids = [await register(owner.rest, kept), await register(owner.rest, deleted)];
  await causeEvent(owner.rest);
  await expect.poll(() => endpoints.arrivals.length, { timeout: 20_000 }).toBe(2);
  await owner.rest(`/v1/webhooks/${ids[1]}`, undefined, { method: "DELETE" });
  await close(owner);
  const tables = ["webhook_endpoints", "webhook_deliveries"] as const;
  const rowsOf = async () => {
    const { sql } = gateway.app.db;
    const found = tables.map((table) =>
      sql.selectFrom(table).select("id").where("account_id", "=", accountId).execute(),
    );
    return (await Promise.all(found)).map(({ length }) => length);
  };
  expect(await rowsOf()).toEqual([1, 2]);
  gateway.pass(7 * day + hour);
  await sweepDeleted(gateway.app);
  expect(await rowsOf()).toEqual([0, 0]);
});

test("a restored account is not erased", async () => {
  const owner = await gateway.signUp();
  const token = await close(owner);
  gateway.pass(7 * day - 60_000);
  expect((await call(restore, { token })).slug).toBe("");
  gateway.pass(day);
  await sweepDeleted(gateway.app);
  expect((await call(logIn, { email: owner.email, password: owner.password })).slug).toBe("");
});
