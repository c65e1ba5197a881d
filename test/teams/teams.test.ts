import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { TeamService } from "../../src/gen/pilothouse/v1/team_pb.ts";
import { sampledTransports } from "../support/long-test.ts";
import { freshEmail, mailAbout, type Person, tokenOfMail } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { restClient } from "../support/rest.ts";
import type { Outcome, TransportName } from "../support/transport-calls.ts";

const { createInvite, listInvites, revokeInvite, acceptInvite } = TeamService.method;
const { listMembers, updateMember, removeMember, leave } = TeamService.method;
const { logIn, refresh } = AuthService.method;

const day = 86_400_000;

let gateway: PeopleGateway;
beforeAll(async () => {
  gateway = await startPeopleGateway();
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

type Method = Parameters<PeopleGateway["call"]>[1];

const call = (
  method: Method,
  request: Record<string, string>,
  token?: string,
  transport: TransportName = "REST",
): Promise<Outcome> => gateway.call(transport, method, request, { token });

/** Calls a method that must succeed. */
async function get(method: Method, request: Record<string, string>, token: string) {
  const { slug, answer } = await call(method, request, token);
  expect(slug).toBe("");
  return answer;
}

const invite = (by: Person, email: string, role = "TEAM_ROLE_MEMBER"): Promise<Outcome> =>
  gateway.call("Connect", createInvite, { email, role }, { token: by.accessToken });
const tokenFor = ({ email }: { email: string }): Promise<string> => tokenOfMail(gateway.mailbox, email);

/** Logs a user in to another account, and returns the token. */
async function loginTo({ email, password }: Person, accountId: string): Promise<string> {
  return (await get(logIn, { email, password, account_id: accountId }, "")).access_token;
}

async function listBy(status: string, token: string) {
  return (await call(listInvites, { status: `TEAM_INVITE_STATUS_${status}` }, token, "Connect")).answer;
}

/** Adds a new user to an account. Returns the user, the membership and a login to that account. */
async function join(owner: Person, role?: string) {
  const person = await gateway.signUp();
  expect((await invite(owner, person.email, role)).slug).toBe("");
  const member = await get(acceptInvite, { token: await tokenFor(person) }, person.accessToken);
  return { person, id: String(member.id), token: await loginTo(person, owner.accountId) };
}

describe.each(sampledTransports)("over %s", (transport) => {
  test("an invited user joins and is listed", async () => {
    const owner = await gateway.signUp({ name: "Ada", accountName: "Engines" });
    const grace = await gateway.signUp({ name: "Grace" });
    const sent = await gateway.call(
      transport,
      createInvite,
      { email: grace.email.toUpperCase() },
      { token: owner.accessToken },
    );
    expect(sent.answer).toMatchObject({ email: grace.email, invited_by: owner.userId });
    expect(Date.parse(sent.answer.expires_at) - gateway.now()).toBeGreaterThan(7 * day - 60_000);
    const joined = await call(acceptInvite, { token: await tokenFor(grace) }, grace.accessToken, transport);
    expect(joined.answer).toMatchObject({ account_id: owner.accountId, user_id: grace.userId, email: grace.email });
    const { data: members } = (await call(listMembers, {}, owner.accessToken, transport)).answer;
    expect(members.map(({ name, mfa_enrolled }: Record<string, unknown>) => [name, mfa_enrolled ?? false])).toEqual([
      ["Grace", false],
      ["Ada", false],
    ]);
    const [accepted] = (await call(listInvites, {}, owner.accessToken, transport)).answer.data;
    expect(accepted).toMatchObject({ id: sent.answer.id, accepted_at: expect.any(String) });
  }, 60_000);

  test("each refusal has its problem", async () => {
    const owner = await gateway.signUp();
    const { person, token, id } = await join(owner);
    const stranger = await gateway.signUp();
    const { data: all } = await get(listMembers, {}, owner.accessToken);
    const owning = all.find((member: { user_id: string }) => member.user_id === owner.userId).id;
    const slugOf = async (method: Method, request: Record<string, string>, bearer?: string) =>
      (await call(method, request, bearer, transport)).slug;
    expect({
      invitedTwice: await slugOf(createInvite, { email: person.email }, owner.accessToken),
      byMember: await slugOf(createInvite, { email: freshEmail() }, token),
      byNobody: await slugOf(createInvite, { email: freshEmail() }),
      unknownToken: await slugOf(acceptInvite, { token: "none" }, person.accessToken),
      unknownInvite: await slugOf(revokeInvite, { id: "inv_none" }, owner.accessToken),
      anothersMember: await slugOf(removeMember, { id }, stranger.accessToken),
      lastOwnerLeaves: await slugOf(leave, {}, owner.accessToken),
      lastOwnerRemoved: await slugOf(removeMember, { id: owning }, owner.accessToken),
      lastOwnerDemoted: await slugOf(
        updateMember,
        {
          id: owning,
          role: transport === "REST" ? "member" : "TEAM_ROLE_MEMBER",
          ...(transport !== "REST" && { update_mask: "role" }),
        },
        owner.accessToken,
      ),
      byKey: await slugOf(leave, {}, gateway.app.developerKey),
    }).toEqual({
      invitedTwice: "conflict",
      byMember: "forbidden",
      byNobody: "unauthorized",
      unknownToken: "invalid-auth-token",
      unknownInvite: "not-found",
      anothersMember: "not-found",
      lastOwnerLeaves: "conflict",
      lastOwnerRemoved: "conflict",
      lastOwnerDemoted: "conflict",
      byKey: "forbidden",
    });
  }, 60_000);
});

const setRole = (id: string, role: string, token: string): Promise<Outcome> => call(updateMember, { id, role }, token);

test("an invite is valid once, for its address, for 7 days, and in its last version", async () => {
  const owner = await gateway.signUp();
  const [grace, eve] = [await gateway.signUp(), await gateway.signUp()];
  const first = await invite(owner, grace.email);
  const stale = await tokenFor(grace);
  const second = await invite(owner, grace.email, "TEAM_ROLE_ADMIN");
  expect([second.answer.id, second.answer.role]).toEqual([first.answer.id, "TEAM_ROLE_ADMIN"]);
  const fresh = await tokenFor(grace);
  const accept = async (token: string, by: Person) => (await call(acceptInvite, { token }, by.accessToken)).slug;
  expect(await accept(stale, grace)).toBe("invalid-auth-token");
  expect(await accept(fresh, eve)).toBe("invalid-auth-token");
  expect(await accept(fresh, grace)).toBe("");
  expect(await accept(fresh, grace)).toBe("invalid-auth-token");
  const late = await invite(owner, eve.email);
  const token = await tokenFor(eve);
  const inTime = await gateway.signUp();
  await invite(owner, inTime.email);
  const tokenInTime = await tokenFor(inTime);
  gateway.pass(7 * day - 60_000);
  const soon = await loginTo(inTime, inTime.accountId);
  expect((await call(acceptInvite, { token: tokenInTime }, soon)).slug).toBe("");
  gateway.pass(60_000);
  const again = await loginTo(owner, owner.accountId);
  expect((await call(acceptInvite, { token }, await loginTo(eve, eve.accountId))).slug).toBe("invalid-auth-token");
  expect((await listBy("EXPIRED", again)).data).toMatchObject([{ id: late.answer.id }]);
}, 60_000);

test("an invite ends when it is revoked, or its sender leaves or falls below its role", async () => {
  const owner = await gateway.signUp();
  const one = await invite(owner, freshEmail());
  expect((await call(revokeInvite, { id: one.answer.id }, owner.accessToken)).slug).toBe("");
  expect((await call(revokeInvite, { id: one.answer.id }, owner.accessToken)).slug).toBe("conflict");
  const admin = await join(owner, "TEAM_ROLE_ADMIN");
  const by = { ...admin.person, accessToken: admin.token };
  const [asAdmin, asMember] = [await invite(by, freshEmail(), "TEAM_ROLE_ADMIN"), await invite(by, freshEmail())];
  const open = async () => {
    const { data = [] } = await listBy("PENDING", owner.accessToken);
    return data.map(({ id }: { id: string }) => id);
  };
  expect(await open()).toEqual([asMember.answer.id, asAdmin.answer.id]);
  expect((await setRole(admin.id, "member", owner.accessToken)).answer.role).toBe("member");
  expect(await open()).toEqual([asMember.answer.id]);
  expect((await call(leave, {}, admin.token)).slug).toBe("");
  expect(await open()).toEqual([]);
}, 60_000);

test("an account sends 20 invites in 24 hours", async () => {
  const owner = await gateway.signUp();
  for (let count = 0; count < 20; count += 1) expect((await invite(owner, freshEmail())).slug).toBe("");
  const refused = await invite(owner, freshEmail());
  expect(refused.slug).toBe("rate-limited");
  expect(Number(refused.extensions.retry_after_seconds)).toBeGreaterThan(86_000);
  gateway.pass(day);
  const token = await loginTo(owner, owner.accountId);
  expect((await invite({ ...owner, accessToken: token }, freshEmail())).slug).toBe("");
}, 60_000);

test("only owners add, demote and remove owners, and one owner remains", async () => {
  const owner = await gateway.signUp();
  const [admin, member] = [await join(owner, "TEAM_ROLE_ADMIN"), await join(owner)];
  expect((await setRole(member.id, "owner", admin.token)).slug).toBe("forbidden");
  expect((await setRole(member.id, "owner", owner.accessToken)).slug).toBe("");
  for (const role of ["admin", "member"]) expect((await setRole(member.id, role, admin.token)).slug).toBe("forbidden");
  expect((await call(removeMember, { id: member.id }, admin.token)).slug).toBe("forbidden");
  // One owner remains when both leave at once.
  const outcomes = await Promise.all([call(leave, {}, owner.accessToken), call(leave, {}, member.token)]);
  expect(outcomes.map(({ slug }) => slug).toSorted()).toEqual(["", "conflict"]);
}, 60_000);

test("a removed member is told by e-mail and loses access immediately, also by refresh tokens", async () => {
  const owner = await gateway.signUp();
  const { person, id, token } = await join(owner);
  const login = await get(logIn, { email: person.email, password: person.password, account_id: owner.accountId }, "");
  expect((await call(removeMember, { id }, owner.accessToken)).slug).toBe("");
  for (const access of [token, login.access_token])
    expect((await call(listMembers, {}, access)).slug).toBe("revoked-key");
  expect((await call(refresh, { refresh_token: login.refresh_token })).slug).toBe("forbidden");
  const { text } = await mailAbout(gateway.mailbox, person.email, "You were removed from a team");
  expect(text).toContain("You are no longer a member of the account");
  // The member's personal account is unaffected.
  expect((await call(listMembers, {}, person.accessToken)).slug).toBe("");
}, 60_000);

describe("the keys of a former member", () => {
  /** Creates a key, and returns the response. */
  const makeKey = (token: string, request: object) =>
    restClient({ url: gateway.url, key: token })("/v1/api-keys", request).then(({ body }) => body);

  const slugWith = async ({ key }: { key: string }) => (await call(listMembers, {}, key)).slug;

  /** Ids of the keys that have a revocation event. */
  const revocations = async ({ accountId }: Person): Promise<string[]> => {
    const { sql } = gateway.app.db;
    const told = sql.selectFrom("events").select("subject").where("account_id", "=", accountId);
    const rows = await told.where("type", "=", "api_key.revoked").orderBy("position").execute();
    return rows.map(({ subject }) => subject);
  };

  /** Creates an owner, and a member with a key and another key made by it. */
  async function scene() {
    const owner = await gateway.signUp();
    await gateway.admin("set-tier", "--account", owner.accountId, "--tier", "personal");
    const member = await join(owner);
    const first = await makeKey(member.token, { name: "first" });
    const second = await makeKey(first.key, { name: "second", scopes: ["team:read", "sessions:read"] });
    return { owner, member, keys: [first, second] };
  }

  test("are revoked by a removal, each with one event, and not again after a second one", async () => {
    const { owner, member, keys } = await scene();
    const own = await makeKey(owner.accessToken, { name: "the owner's" });
    expect((await call(removeMember, { id: member.id }, owner.accessToken)).slug).toBe("");
    expect(await Promise.all([...keys, own].map(slugWith))).toEqual(["revoked-key", "revoked-key", ""]);
    const ids = keys.map(({ id }) => id);
    expect(await revocations(owner)).toEqual(ids);
    expect((await invite(owner, member.person.email)).slug).toBe("");
    await get(acceptInvite, { token: await tokenFor(member.person) }, member.person.accessToken);
    expect(await Promise.all(keys.map(slugWith))).toEqual(["revoked-key", "revoked-key"]);
    const { body } = await owner.rest("/v1/account/audit-log?action=team_member.remove");
    expect(body.data[0].details).toMatchObject({ email: member.person.email, revoked_keys: ids });
  }, 60_000);

  test("are revoked when the member leaves", async () => {
    const { owner, member, keys } = await scene();
    expect((await call(leave, {}, member.token)).slug).toBe("");
    expect(await Promise.all(keys.map(slugWith))).toEqual(["revoked-key", "revoked-key"]);
    expect(await revocations(owner)).toHaveLength(2);
  }, 60_000);

  test("are transferred by keep_keys to the remover, limited to the remover's scopes", async () => {
    const { owner, member, keys } = await scene();
    const scopes = ["team:read", "team:write", "api_keys:read"];
    const remover = await makeKey(owner.accessToken, { name: "remover", scopes });
    const path = `/v1/team/members/${member.id}?keep_keys=true`;
    const rest = restClient({ url: gateway.url, key: remover.key });
    expect((await rest(path, undefined, { method: "DELETE" })).status).toBe(204);
    expect(await Promise.all(keys.map(slugWith))).toEqual(["", ""]);
    const { data } = (await rest("/v1/api-keys")).body;
    const [kept] = keys.map(({ id }) => data.find((key: { id: string }) => key.id === id));
    expect(kept).toMatchObject({ created_by: owner.userId, status: "active" });
    expect(new Set(kept.scopes)).toEqual(new Set(["team:read", "api_keys:read"]));
    expect(await revocations(owner)).toEqual([]);
  }, 60_000);
});

describe("an invite of a key", () => {
  const hour = 3_600_000;

  /** Creates an admin whose key has invited another admin. */
  async function scene(more: object = {}) {
    const owner = await gateway.signUp();
    const admin = await join(owner, "TEAM_ROLE_ADMIN");
    const as = (key: string) => restClient({ url: gateway.url, key });
    const { body: key } = await as(admin.token)("/v1/api-keys", { name: "inviter", ...more });
    const guest = await gateway.signUp();
    const sent = await as(key.key)("/v1/team/invites", { email: guest.email, role: "admin" });
    expect(sent).toMatchObject({ status: 201, body: { invited_by: admin.person.userId, invited_by_key: key.id } });
    const token = await tokenFor(guest);
    const path = `/v1/api-keys/${key.id}`;
    return {
      owner,
      admin,
      guest,
      token,
      invite: sent.body.id,
      remove: () => owner.rest(path, undefined, { method: "DELETE" }),
    };
  }
  type Scene = Awaited<ReturnType<typeof scene>>;

  const accept = async ({ guest, token }: Scene) =>
    (await call(acceptInvite, { token }, await loginTo(guest, guest.accountId))).slug;
  const listed = async ({ owner, invite: id }: Scene, status: string) => {
    const { data = [] } = await listBy(status, await loginTo(owner, owner.accountId));
    return data.some((one: { id: string }) => one.id === id);
  };

  test("is accepted while the key is valid and its creator has the role", async () => {
    expect(await accept(await scene({ expires_at: new Date(gateway.now() + hour) }))).toBe("");
  }, 60_000);

  test.each<[string, (made: Scene) => Promise<unknown>]>([
    ["the key is revoked", ({ remove }) => remove()],
    ["its creator is removed", ({ owner, admin }) => call(removeMember, { id: admin.id }, owner.accessToken)],
    [
      "its creator is removed and the key is kept",
      ({ owner, admin }) => owner.rest(`/v1/team/members/${admin.id}?keep_keys=true`, undefined, { method: "DELETE" }),
    ],
    ["its creator falls below the role", ({ owner, admin }) => setRole(admin.id, "member", owner.accessToken)],
    [
      "its creator falls below the role and regains it",
      async ({ owner, admin }) => {
        for (const role of ["member", "admin"]) await setRole(admin.id, role, owner.accessToken);
      },
    ],
  ])(
    "ends when %s",
    async (_, end) => {
      const made = await scene();
      expect(await listed(made, "PENDING")).toBe(true);
      await end(made);
      expect([await listed(made, "PENDING"), await listed(made, "REVOKED")]).toEqual([false, true]);
      expect(await accept(made)).toBe("invalid-auth-token");
      const { email, password } = made.guest;
      const login = await call(logIn, { email, password, invite_token: made.token });
      expect(login.slug).toBe("invalid-auth-token");
    },
    60_000,
  );

  test("ends when the key expires", async () => {
    const made = await scene({ expires_at: new Date(gateway.now() + hour) });
    gateway.pass(hour);
    expect(await listed(made, "REVOKED")).toBe(true);
    expect(await accept(made)).toBe("invalid-auth-token");
  }, 60_000);
});

test("an update changes only the fields of its mask", async () => {
  const owner = await gateway.signUp();
  const { id } = await join(owner);
  const unnamed = await call(updateMember, { id, role: "TEAM_ROLE_ADMIN" }, owner.accessToken, "gRPC");
  expect([unnamed.slug, unnamed.answer.role]).toEqual(["", "TEAM_ROLE_MEMBER"]);
  const empty = await call(updateMember, { id }, owner.accessToken);
  expect([empty.slug, empty.answer.role]).toEqual(["", "member"]);
  const named = { id, role: "TEAM_ROLE_UNSPECIFIED", update_mask: "role" };
  expect((await call(updateMember, named, owner.accessToken, "Connect")).slug).toBe("validation-failed");
  expect((await owner.rest("/v1/account/audit-log?action=team_member.update")).body.data).toEqual([]);
}, 60_000);

test("a new role applies to the next request, and each change is in the audit log", async () => {
  const owner = await gateway.signUp();
  const { id, token } = await join(owner);
  expect((await call(createInvite, { email: freshEmail() }, token)).slug).toBe("forbidden");
  expect((await setRole(id, "admin", owner.accessToken)).slug).toBe("");
  expect((await call(createInvite, { email: freshEmail() }, token)).slug).toBe("");
  expect((await setRole(id, "member", owner.accessToken)).slug).toBe("");
  expect((await call(createInvite, { email: freshEmail() }, token)).slug).toBe("forbidden");
  expect((await call(removeMember, { id }, owner.accessToken)).slug).toBe("");
  const { body } = await owner.rest("/v1/account/audit-log?limit=100");
  const actions: string[] = body.data.map(({ action }: { action: string }) => action);
  expect(actions.filter((action) => action.startsWith("team_")).toReversed()).toEqual([
    "team_invite.create",
    "team_invite.accept",
    "team_member.update",
    "team_invite.create",
    "team_member.update",
    "team_member.remove",
  ]);
}, 60_000);
