import { randomBytes, randomInt } from "node:crypto";
import { expect } from "vitest";
import type { Mailbox, ReceivedMail } from "./mailbox.ts";
import { type Rest, restClient } from "./rest.ts";

/** Password of all users in tests. */
export const goodPassword = "correct horse battery staple";

/** User who has signed up, verified the address and logged in. */
export interface Person {
  readonly email: string;
  readonly password: string;
  readonly userId: string;
  readonly accountId: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Calls the REST API with the access token. */
  readonly rest: Rest;
}

/** Options of a new user. */
export interface PersonChoice {
  readonly email?: string;
  readonly name?: string;
  readonly accountName?: string;
  readonly acceptedRevisionId?: string;
}

/** Signs up a user who joins the account of another caller. The returned login is for that account. */
export async function joinTeam(url: string, mailbox: Mailbox, host: Rest, role = "member"): Promise<Person> {
  const person = await signUp(url, mailbox);
  const { email, password } = person;
  expect(await host("/v1/team/invites", { email, role })).toMatchObject({ status: 201 });
  const token = await tokenOfMail(mailbox, email);
  const { body: member } = await person.rest("/v1/team/invites/accept", { token });
  const login = { email, password, account_id: member.account_id };
  const { status, body } = await person.rest("/v1/auth/login", login, { headers: fromOwnNetwork() });
  expect(status).toBe(200);
  return {
    ...person,
    accountId: member.account_id,
    accessToken: body.access_token,
    refreshToken: body.refresh_token,
    rest: restClient({ url, key: body.access_token }),
  };
}

let network = randomInt(65_536);

/** Headers with a client network that no other test of the process has, so that rate limits of other tests do not apply. */
export function fromOwnNetwork() {
  network = (network + 1) % 65_536;
  return { "x-forwarded-for": `2001:db8:${network.toString(16)}::1` };
}

/** Returns a new address. */
export function freshEmail(): string {
  return `user-${randomBytes(6).toString("hex")}@example.com`;
}

/** Removes and returns the e-mail with a subject. Skips other e-mails, such as those about logins from new devices. */
export async function mailAbout(mailbox: Mailbox, email: string, subject: string): Promise<ReceivedMail> {
  for (;;) {
    const mail = await mailbox.next(email);
    if (mail.subject === subject) return mail;
  }
}

/** Returns the token in the next e-mail to an address that has a link with a token. */
export async function tokenOfMail(mailbox: Mailbox, email: string): Promise<string> {
  for (;;) {
    const { links } = await mailbox.next(email);
    const [, token] = links.find((link) => link.includes("#"))?.split("#") ?? [];
    if (token !== undefined) return token;
  }
}

/** Signs up a user over REST, follows the link of the e-mail, and logs in by password. */
export async function signUp(url: string, mailbox: Mailbox, choice: PersonChoice = {}): Promise<Person> {
  const { email = freshEmail(), name, accountName, acceptedRevisionId } = choice;
  const headers = fromOwnNetwork();
  const rest = restClient({ url, key: "" });
  const who = { email, password: goodPassword };
  const more = { name, account_name: accountName, accepted_revision_id: acceptedRevisionId };
  const signedUp = await rest("/v1/auth/signup", { ...who, ...more }, { headers });
  expect(signedUp).toMatchObject({ status: 201 });
  const token = await tokenOfMail(mailbox, email);
  expect(await rest("/v1/auth/verify-email", { token }, { headers })).toMatchObject({ status: 200 });
  const { status, body } = await rest("/v1/auth/login", who, { headers });
  expect(status).toBe(200);
  return {
    ...who,
    userId: body.user_id,
    accountId: body.account_id,
    accessToken: body.access_token,
    refreshToken: body.refresh_token,
    rest: restClient({ url, key: body.access_token }),
  };
}
