import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountService } from "../../src/gen/pilothouse/v1/account_pb.ts";
import { ApiKeyService } from "../../src/gen/pilothouse/v1/api_key_pb.ts";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { TeamService } from "../../src/gen/pilothouse/v1/team_pb.ts";
import { createArrangements } from "../../src/limits/arrangements.ts";
import { clockAt } from "../support/clock-at.ts";
import { joinTeam, mailAbout, type Person, tokenOfMail } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type Outcome, transportNames } from "../support/transport-calls.ts";

const { getMe, updateMe, getEmailPreferences, updateEmailPreferences } = AccountService.method;
const { createInvite, acceptInvite, leave } = TeamService.method;

let gateway: PeopleGateway;
let ada: Person;
beforeAll(async () => {
  gateway = await startPeopleGateway();
  ada = await gateway.signUp({ name: "Ada", accountName: "Engines" });
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

type Method = Parameters<PeopleGateway["call"]>[1];
const get = (method: Method, token: string | undefined, request = {}): Promise<Outcome> =>
  gateway.call("REST", method, request, { token });

/** Adds a new user to an account. Returns the user, and an access token for that account. */
async function join(owner: Person): Promise<{ person: Person; token: string }> {
  const person = await gateway.signUp();
  await get(createInvite, owner.accessToken, { email: person.email });
  await get(acceptInvite, person.accessToken, { token: await tokenOfMail(gateway.mailbox, person.email) });
  const { email, password } = person;
  const { answer } = await get(AuthService.method.logIn, undefined, { email, password, account_id: owner.accountId });
  return { person, token: answer.access_token };
}

async function makeKey(scopes: readonly string[]): Promise<{ id: string; key: string }> {
  return (await get(ApiKeyService.method.create, ada.accessToken, { name: "a program", scopes })).answer;
}

describe.each(transportNames)("over %s", (transport) => {
  test("a login reads its user and the quotas of its account", async () => {
    const { answer } = await gateway.call(transport, getMe, {}, { token: ada.accessToken });
    expect(answer).toMatchObject({
      account: { id: ada.accountId, created_at: expect.any(String) },
      user: { id: ada.userId, email: ada.email, name: "Ada", email_verified: true },
      memberships: [{ account_id: ada.accountId, account_name: "Engines" }],
    });
    expect(answer.scopes).toContain("team:write");
    const used = answer.account.quotas.map(({ quota, limit }: Record<string, unknown>) => [quota, Number(limit)]);
    expect(Object.fromEntries(used)).toMatchObject({ session_minutes: 60, profiles: 1, concurrent_sessions: 1 });
  });

  test("an update changes the name and only the given preferences", async () => {
    const { accessToken: token, accountId } = await gateway.signUp({ name: "Grace", accountName: "Compilers" });
    const names = { name: "Grace H.", account_name: "Cobol" };
    const request = transport === "REST" ? names : { ...names, update_mask: "name,accountName" };
    const { answer } = await gateway.call(transport, updateMe, request, { token });
    expect(answer).toMatchObject({ user: { name: "Grace H." }, account: { id: accountId, name: "Cobol" } });
    const kept = await gateway.call(transport, updateEmailPreferences, { product_updates: true }, { token });
    expect(kept.answer).toMatchObject({ product_updates: true, updated_at: expect.any(String) });
    const { answer: read } = await gateway.call(transport, getEmailPreferences, {}, { token });
    expect(read).toEqual(kept.answer);
    expect(read).toMatchObject({ usage_alerts: true, webhook_failures: true, team_activity: true });
    await gateway.call(transport, updateEmailPreferences, { usage_alerts: false }, { token });
    const { answer: changed } = await gateway.call(transport, getEmailPreferences, {}, { token });
    expect([changed.product_updates, changed.usage_alerts ?? false, changed.team_activity]).toEqual([
      true,
      false,
      true,
    ]);
  });
});

test("a key reads its account and scopes, but not the other accounts of its creator", async () => {
  const { id, key } = await makeKey(["account:read"]);
  const { answer } = await get(getMe, key);
  expect(answer).toMatchObject({ api_key_id: id, role: "owner", user: { id: ada.userId } });
  expect(answer).toMatchObject({ scopes: ["account:read"], memberships: [] });
  const ofNobody = await get(getMe, gateway.app.developerKey);
  expect(ofNobody.answer).toMatchObject({ user: null, role: null, account: { tier: "enterprise" } });
});

test("the account counts usage against its quotas", async () => {
  const person = await gateway.signUp();
  await get(ApiKeyService.method.create, person.accessToken, { name: "a program" });
  expect((await person.rest("/v1/profiles", { name: "Shop" })).status).toBe(201);
  const { quotas } = (await get(getMe, person.accessToken)).answer.account;
  expect(quotas).toMatchObject([
    { quota: "session_minutes", used: 0, limit: 60, resets_at: expect.stringMatching(/-01T00:00:00/) },
    { quota: "profile_storage_bytes", used: 0 },
    { quota: "profiles", used: 1, limit: 1 },
    { quota: "api_keys", used: 1, limit: 2 },
    { quota: "concurrent_sessions", used: 0, limit: 1 },
  ]);
});

test("an update rejects a name from a caller without the right, and an empty name", async () => {
  const { token } = await join(ada);
  const { developerKey } = gateway.app;
  const { key } = await makeKey(["account:read"]);
  const cases = {
    "a member names the account": [token, { account_name: "Mine" }, "forbidden"],
    "a member names itself": [token, { name: "Grace" }, ""],
    "a key without user names it": [developerKey, { name: "Nobody" }, "forbidden"],
    "a read-only key": [key, { account_name: "Mine" }, "forbidden"],
    "a cleared name": [ada.accessToken, { name: null }, "validation-failed"],
    "a cleared account name": [ada.accessToken, { account_name: null }, "validation-failed"],
    "no change": [ada.accessToken, {}, ""],
  } as const;
  for (const [name, [shown, request, slug]] of Object.entries(cases))
    expect([name, (await get(updateMe, shown, request)).slug]).toEqual([name, slug]);
  expect((await get(getMe, ada.accessToken)).answer.account.name).toBe("Engines");
});

test("a key without a user receives no e-mails", async () => {
  expect((await get(getEmailPreferences, gateway.app.developerKey)).slug).toBe("not-found");
  expect((await get(updateEmailPreferences, gateway.app.developerKey, {})).slug).toBe("not-found");
});

test("e-mails follow the preferences, except security e-mails", async () => {
  const owner = await gateway.signUp();
  const nextSubject = async () => (await gateway.mailbox.next(owner.email)).subject;
  const before = await get(getEmailPreferences, owner.accessToken);
  expect(before.answer).toMatchObject({ product_updates: false, team_activity: true, updated_at: null });
  const { token } = await join(owner);
  expect(await nextSubject()).toBe("Someone joined your team");
  await get(leave, token);
  expect(await nextSubject()).toBe("A member left your team");
  await get(updateEmailPreferences, owner.accessToken, { team_activity: false });
  await join(owner);
  await get(AuthService.method.requestMagicLink, undefined, { email: owner.email });
  expect(await nextSubject()).toBe("Your login link");
});

test("owners and admins receive an e-mail about an exhausted quota unless their preferences exclude it", async () => {
  const owner = await gateway.signUp({ accountName: "Engines" });
  const admin = await joinTeam(gateway.url, gateway.mailbox, owner.rest, "admin");
  await get(updateEmailPreferences, admin.accessToken, { usage_alerts: false });
  const arrangements = createArrangements({ clock: clockAt(gateway.now), bus: gateway.app.bus });
  const override = { limit: "session_minutes", value: 0, expiresAt: new Date(gateway.now() + 60_000).toISOString() };
  await gateway.app.db.transaction((tx) => arrangements.override(tx, owner.accountId, override));
  const { text } = await mailAbout(gateway.mailbox, owner.email, "A quota is used up");
  expect(text).toContain("Engines has used 100 % of its monthly session minutes");
  await get(AuthService.method.requestMagicLink, undefined, { email: admin.email });
  const subjects = () => gateway.mailbox.waiting(admin.email).map(({ subject }) => subject);
  await expect.poll(subjects, { timeout: 20_000 }).toContain("Your login link");
  expect(subjects().filter((subject) => subject.includes("quota"))).toEqual([]);
});
