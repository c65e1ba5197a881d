import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountService } from "../../src/gen/pilothouse/v1/account_pb.ts";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { TeamService } from "../../src/gen/pilothouse/v1/team_pb.ts";
import { freshEmail, goodPassword as password, tokenOfMail } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type Outcome, transportNames } from "../support/transport-calls.ts";

const { signUp, verifyEmail, logIn, requestMagicLink, consumeMagicLink } = AuthService.method;
const { createInvite, revokeInvite, leave } = TeamService.method;

let gateway: PeopleGateway;
beforeAll(async () => {
  gateway = await startPeopleGateway({ SIGNUP: "closed" });
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

type Method = Parameters<PeopleGateway["call"]>[1];
const call = (method: Method, request: Record<string, string>, token?: string): Promise<Outcome> =>
  gateway.call("REST", method, request, { token });
const mailed = (email: string): Promise<string> => tokenOfMail(gateway.mailbox, email);

/** Invites an address to the account of embedded mode. Returns the invite and its mailed token. */
async function invite(email = freshEmail(), role = "member") {
  const { answer } = await call(createInvite, { email, role }, gateway.app.developerKey);
  return { id: answer.id, email, token: await mailed(email) };
}

/** Signs up with an invite, and verifies the address. */
async function join() {
  const { email, token } = await invite();
  expect((await call(signUp, { email, password, invite_token: token })).slug).toBe("");
  expect((await call(verifyEmail, { token: await mailed(email) })).slug).toBe("");
  const { slug, answer } = await call(logIn, { email, password });
  expect(slug).toBe("");
  return { email, accessToken: answer.access_token, accountId: answer.account_id };
}

const membershipsOf = async (token: string) =>
  (await call(AccountService.method.getMe, {}, token)).answer.memberships.map(
    ({ account_id }: Record<string, string>) => account_id,
  );

describe.each(transportNames)("over %s", (transport) => {
  test("an invited user signs up though sign-up is closed, and belongs only to that account", async () => {
    const nobody = { email: freshEmail(), password };
    expect((await gateway.call(transport, signUp, nobody)).slug).toBe("feature-unavailable");
    const { email, token } = await invite();
    const who = { email, password, name: "Grace", invite_token: token };
    const signedUp = await gateway.call(transport, signUp, who);
    expect((await call(logIn, { email, password })).slug).toBe("email-not-verified");
    expect((await gateway.call(transport, verifyEmail, { token: await mailed(email) })).slug).toBe("");
    const { answer } = await gateway.call(transport, logIn, { email, password });
    expect(answer.account_id).toBe(signedUp.answer.account_id);
    expect(await membershipsOf(answer.access_token)).toEqual([answer.account_id]);
    expect((await gateway.call(transport, signUp, who)).slug).toBe("invalid-auth-token");
  });

  test("a user joins by logging in with the invite", async () => {
    const { email, accessToken } = await join();
    // A user without an account cannot log in.
    expect((await call(leave, {}, accessToken)).slug).toBe("");
    expect((await call(logIn, { email, password })).slug).toBe("forbidden");
    const { token } = await invite(email);
    const request = { email, password, invite_token: token };
    const { answer } = await gateway.call(transport, logIn, request);
    expect(await membershipsOf(answer.access_token)).toEqual([answer.account_id]);
    expect((await gateway.call(transport, logIn, request)).slug).toBe("invalid-auth-token");
  });
});

test("an invite admits only its address, and only while it is valid", async () => {
  const [named, revoked, late] = [await invite(), await invite(), await invite()];
  const attempt = async (email: string, invite_token: string) =>
    (await call(signUp, { email, password, invite_token })).slug;
  expect(await attempt(freshEmail(), named.token)).toBe("invalid-auth-token");
  await call(revokeInvite, { id: revoked.id }, gateway.app.developerKey);
  expect(await attempt(revoked.email, revoked.token)).toBe("invalid-auth-token");
  gateway.pass(7 * 86_400_000);
  expect(await attempt(late.email, late.token)).toBe("invalid-auth-token");
});

test("a wrong password does not consume an invite", async () => {
  const { email, accessToken } = await join();
  await call(leave, {}, accessToken);
  const { token: invite_token } = await invite(email);
  const wrong = { email, password: "not the right password", invite_token };
  expect((await call(logIn, wrong)).slug).toBe("invalid-credentials");
  expect((await call(logIn, { email, password, invite_token })).slug).toBe("");
});

test("an invited user who verifies the address by a magic link joins", async () => {
  const { email, token } = await invite();
  await call(signUp, { email, password, invite_token: token });
  await mailed(email);
  await call(requestMagicLink, { email });
  const { answer } = await call(consumeMagicLink, { token: await mailed(email) });
  expect(await membershipsOf(answer.access_token)).toEqual([answer.account_id]);
});

test("a revoked invite leaves an unverified user who can be invited again", async () => {
  const first = await invite();
  await call(signUp, { email: first.email, password, invite_token: first.token });
  await call(revokeInvite, { id: first.id }, gateway.app.developerKey);
  expect((await call(verifyEmail, { token: await mailed(first.email) })).slug).toBe("");
  expect((await call(logIn, { email: first.email, password })).slug).toBe("forbidden");
  const again = await invite(first.email);
  const { slug } = await call(logIn, { email: first.email, password, invite_token: again.token });
  expect(slug).toBe("");
});
