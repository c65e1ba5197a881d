import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountService } from "../../../src/gen/pilothouse/v1/account_pb.ts";
import { ApiKeyService } from "../../../src/gen/pilothouse/v1/api_key_pb.ts";
import { AuthService } from "../../../src/gen/pilothouse/v1/auth_pb.ts";
import { CredentialsService } from "../../../src/gen/pilothouse/v1/credentials_pb.ts";
import { TeamService } from "../../../src/gen/pilothouse/v1/team_pb.ts";
import { sampledTransports } from "../../support/long-test.ts";
import { freshEmail, goodPassword, mailAbout, type Person, tokenOfMail } from "../../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import type { Outcome, TransportName } from "../../support/transport-calls.ts";

const { changePassword, requestEmailChange, confirmEmailChange, undoEmailChange } = CredentialsService.method;
const { signUp, logIn, requestMagicLink, consumeMagicLink, confirmPasswordReset } = AuthService.method;
const { createInvite, listInvites } = TeamService.method;
const { create: createKey } = ApiKeyService.method;
const { getMe } = AccountService.method;
const newPassword = "four wheels and a steady hand";
const day = 86_400_000;

let gateway: PeopleGateway;
beforeAll(async () => {
  gateway = await startPeopleGateway();
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

type Method = Parameters<PeopleGateway["call"]>[1];
const call = (method: Method, request: Record<string, string>, token?: string): Promise<Outcome> =>
  gateway.call("REST", method, request, { token });
const tokenTo = (email: string): Promise<string> => tokenOfMail(gateway.mailbox, email);

async function logInAgain({ email, password }: Pick<Person, "email" | "password">): Promise<Outcome> {
  return call(logIn, { email, password });
}

/** Slug of a request with the token. */
const use = async (token: string): Promise<string> => (await call(getMe, {}, token)).slug;

/** Requests an address change. Returns the new address and its mailed token. */
async function askFor(person: Person, email = freshEmail(), transport: TransportName = "REST") {
  const request = { email, password: person.password };
  const asked = await gateway.call(transport, requestEmailChange, request, { token: person.accessToken });
  expect(asked.answer).toEqual({ email, valid_seconds: 86_400 });
  return { email, token: await tokenTo(email) };
}

/** Changes a user's address. Returns the new address and the undo token. */
async function move(person: Person) {
  const { email, token } = await askFor(person);
  expect((await call(confirmEmailChange, { token })).slug).toBe("");
  return { email, undo: await tokenTo(person.email) };
}

describe.each(sampledTransports)("over %s", (transport) => {
  test("a password change requires the present password, and ends the other logins", async () => {
    const person = await gateway.signUp();
    const { answer: other } = await logInAgain(person);
    const change = (current_password: string, password: string) =>
      gateway.call(transport, changePassword, { current_password, password }, { token: person.accessToken });
    expect((await change("not the right password", newPassword)).slug).toBe("invalid-credentials");
    expect((await change(person.password, "qwertyuiop")).slug).toBe("validation-failed");
    expect((await change(person.password, newPassword)).slug).toBe("");
    await mailAbout(gateway.mailbox, person.email, "Your password was changed");
    expect(await use(person.accessToken)).toBe("");
    expect(await use(other.access_token)).toBe("revoked-key");
    expect((await logInAgain(person)).slug).toBe("invalid-credentials");
    expect((await logInAgain({ ...person, password: newPassword })).slug).toBe("");
  });

  test("an address change is confirmed at the new address, and the old one receives a link to undo it", async () => {
    const person = await gateway.signUp();
    const { answer: other } = await logInAgain(person);
    const { email, token } = await askFor(person, undefined, transport);
    expect((await call(getMe, {}, person.accessToken)).answer.user.email).toBe(person.email);
    const confirmed = await gateway.call(transport, confirmEmailChange, { token });
    expect(confirmed.answer).toMatchObject({ user_id: person.userId, email, changed_at: expect.any(String) });
    expect((await gateway.call(transport, confirmEmailChange, { token })).slug).toBe("invalid-auth-token");
    expect((await call(getMe, {}, person.accessToken)).answer.user.email).toBe(email);
    expect(await use(other.access_token)).toBe("revoked-key");
    expect((await logInAgain(person)).slug).toBe("invalid-credentials");
    expect((await logInAgain({ ...person, email })).slug).toBe("");
    const told = await mailAbout(gateway.mailbox, person.email, "Your e-mail address was changed");
    const undo = told.links[0]?.split("#")[1] ?? "";
    expect((await gateway.call(transport, undoEmailChange, { token: undo })).answer).toMatchObject({
      email: person.email,
    });
    expect((await gateway.call(transport, undoEmailChange, { token: undo })).slug).toBe("invalid-auth-token");
    expect(await use(person.accessToken)).toBe("revoked-key");
    // The password is invalid, because the person who changed the address knew it.
    expect((await logInAgain(person)).slug).toBe("invalid-credentials");
    const reset = await tokenTo(person.email);
    expect((await call(confirmPasswordReset, { token: reset, password: newPassword })).slug).toBe("");
    expect((await logInAgain({ ...person, password: newPassword })).slug).toBe("");
  });

  test("a key changes neither password nor address", async () => {
    const shown = { token: gateway.app.developerKey };
    const password = { current_password: goodPassword, password: newPassword };
    expect((await gateway.call(transport, changePassword, password, shown)).slug).toBe("forbidden");
    const address = { email: freshEmail(), password: goodPassword };
    expect((await gateway.call(transport, requestEmailChange, address, shown)).slug).toBe("forbidden");
  });
});

test("a password change shares the tries of a login, and invalidates mailed links", async () => {
  const person = await gateway.signUp();
  expect((await call(createKey, { name: "nightly checks" }, person.accessToken)).slug).toBe("");
  await call(requestMagicLink, { email: person.email });
  const link = await tokenTo(person.email);
  const request = { current_password: person.password, password: newPassword };
  expect((await call(changePassword, request, person.accessToken)).slug).toBe("");
  expect((await call(consumeMagicLink, { token: link })).slug).toBe("invalid-auth-token");
  const { links } = await mailAbout(gateway.mailbox, person.email, "Your password was changed");
  expect(links.filter((each) => each.includes("/auth/keys#"))).toHaveLength(1);
  const guesses = Array.from({ length: 40 }, (_, index) => {
    const shown = { token: person.accessToken, from: `198.51.${index}.7` };
    return gateway.call("REST", changePassword, { ...request, current_password: "a guess" }, shown);
  });
  const slugs = (await Promise.all(guesses)).map(({ slug }) => slug);
  expect(slugs.filter((slug) => slug === "invalid-credentials")).toHaveLength(20);
  expect(slugs.filter((slug) => slug === "rate-limited")).toHaveLength(20);
});

test("an address change to a user's address has the same answer, and notifies that user", async () => {
  const [person, other] = [await gateway.signUp(), await gateway.signUp()];
  const ask = (email: string) => call(requestEmailChange, { email, password: person.password }, person.accessToken);
  expect((await ask(other.email)).answer).toEqual({ email: other.email, valid_seconds: 86_400 });
  const told = await gateway.mailbox.next(other.email);
  expect([told.subject, told.links]).toEqual(["Someone tried to use your e-mail address", []]);
  expect((await ask(person.email)).answer).toMatchObject({ errors: [{ field: "email" }] });
});

test("an address is available despite a pending sign-up, but not when it belongs to another user", async () => {
  const [person, late] = [await gateway.signUp(), await gateway.signUp()];
  const email = freshEmail();
  await call(signUp, { email, password: goodPassword });
  await tokenTo(email);
  const [first, second] = [await askFor(person, email), await askFor(late, email)];
  expect((await call(confirmEmailChange, { token: first.token })).slug).toBe("");
  expect((await call(confirmEmailChange, { token: second.token })).slug).toBe("email-already-registered");
});

test("an address is changed once when two users confirm it at once", async () => {
  const email = freshEmail();
  const people = [await gateway.signUp(), await gateway.signUp()];
  const tokens = [];
  for (const person of people) tokens.push((await askFor(person, email)).token);
  const slugs = await Promise.all(tokens.map(async (token) => (await call(confirmEmailChange, { token })).slug));
  expect(slugs.sort()).toEqual(["", "email-already-registered"]);
});

test("an address change invalidates the links and invites of the old address", async () => {
  const [owner, person] = [await gateway.signUp(), await gateway.signUp()];
  await call(createInvite, { email: person.email }, owner.accessToken);
  await call(requestMagicLink, { email: person.email });
  await expect.poll(() => gateway.mailbox.waiting(person.email).length, { timeout: 20_000 }).toBe(2);
  const mails = [await gateway.mailbox.next(person.email), await gateway.mailbox.next(person.email)];
  const magic = mails.flatMap(({ links }) => links.find((link) => link.includes("/magic-link#")) ?? []);
  await move(person);
  const [, token = ""] = magic[0]?.split("#") ?? [];
  expect((await call(consumeMagicLink, { token })).slug).toBe("invalid-auth-token");
  const [invite] = (await call(listInvites, {}, owner.accessToken)).answer.data;
  expect(invite).toMatchObject({ email: person.email, status: "revoked" });
});

test("an address change can be undone for 72 hours, despite later changes", async () => {
  const person = await gateway.signUp();
  const first = await move(person);
  const stolen = { ...person, email: first.email };
  const request = { current_password: person.password, password: newPassword };
  expect((await call(changePassword, request, person.accessToken)).slug).toBe("");
  await gateway.mailbox.next(first.email);
  const second = await move({ ...stolen, password: newPassword });
  gateway.pass(3 * day - 60_000);
  expect((await call(undoEmailChange, { token: first.undo })).answer).toMatchObject({ email: person.email });
  expect((await call(undoEmailChange, { token: second.undo })).slug).toBe("invalid-auth-token");
  const late = await move(await gateway.signUp());
  gateway.pass(3 * day);
  expect((await call(undoEmailChange, { token: late.undo })).slug).toBe("invalid-auth-token");
});

test("an address change can be confirmed for 24 hours", async () => {
  const [early, late] = [await askFor(await gateway.signUp()), await askFor(await gateway.signUp())];
  gateway.pass(day - 60_000);
  expect((await call(confirmEmailChange, { token: early.token })).slug).toBe("");
  gateway.pass(60_000);
  expect((await call(confirmEmailChange, { token: late.token })).slug).toBe("invalid-auth-token");
});

test("a user sends at most 5 e-mails an hour, as does each address", async () => {
  const person = await gateway.signUp();
  const ask = async (by: Person, email: string) =>
    (await call(requestEmailChange, { email, password: by.password }, by.accessToken)).slug;
  const email = freshEmail();
  for (let turn = 0; turn < 5; turn += 1) expect(await ask(person, email)).toBe("");
  expect(await ask(person, freshEmail())).toBe("rate-limited");
  expect(await ask(await gateway.signUp(), email)).toBe("rate-limited");
});
