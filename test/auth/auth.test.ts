import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiKeyService } from "../../src/gen/pilothouse/v1/api_key_pb.ts";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { ProfileService } from "../../src/gen/pilothouse/v1/profile_pb.ts";
import { freshEmail, goodPassword, mailAbout, type Person, tokenOfMail } from "../support/people.ts";
import { type PeopleGateway, type Shown, startPeopleGateway } from "../support/people-gateway.ts";
import { restClient } from "../support/rest.ts";
import { type Outcome, type TransportName, transportNames } from "../support/transport-calls.ts";

const { signUp, logIn, logOut, verifyEmail, requestMagicLink, consumeMagicLink, requestPasswordReset } =
  AuthService.method;
const { confirmPasswordReset, refresh, revokeKeys } = AuthService.method;
const day = 86_400_000;
const minute = 60_000;

let gateway: PeopleGateway;
/** A user who keeps the password and the account. */
let ada: Person;
beforeAll(async () => {
  gateway = await startPeopleGateway();
  ada = await gateway.signUp();
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

const mailToken = (email: string): Promise<string> => tokenOfMail(gateway.mailbox, email);
const logInAs = ({ email, password }: { email: string; password: string }, shown: Shown = {}): Promise<Outcome> =>
  gateway.call("REST", logIn, { email, password }, shown);
/** Slug of a request with the token. */
const use = async (token: string): Promise<string> =>
  (await gateway.call("REST", ProfileService.method.list, {}, { token })).slug;

async function signUpOnly(): Promise<{ email: string; password: string }> {
  const who = { email: freshEmail(), password: goodPassword };
  expect((await gateway.call("REST", signUp, who)).slug).toBe("");
  return who;
}

async function linkFor(email: string, kind: typeof requestMagicLink | typeof requestPasswordReset): Promise<string> {
  expect((await gateway.call("REST", kind, { email })).slug).toBe("");
  return mailToken(email);
}

describe.each(transportNames)("over %s", (transport: TransportName) => {
  test("a user signs up, verifies the address, logs in and logs out", async () => {
    const who = { email: freshEmail(), password: goodPassword };
    const signedUp = await gateway.call(transport, signUp, { ...who, name: "Ada", account_name: "Engines" });
    expect(signedUp.answer).toMatchObject({ email: who.email, user_id: expect.stringMatching(/^usr_/) });
    const verified = await gateway.call(transport, verifyEmail, { token: await mailToken(who.email) });
    expect(verified.answer).toMatchObject({ email: who.email, user_id: signedUp.answer.user_id });
    const { answer, headers } = await gateway.call(transport, logIn, who);
    expect(answer).toMatchObject({ token_type: "Bearer", account_id: signedUp.answer.account_id });
    expect(Date.parse(answer.expires_at) - gateway.now()).toBeLessThanOrEqual(900_000);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(await use(answer.access_token)).toBe("");
    expect((await gateway.call(transport, logOut, {}, { token: answer.access_token })).slug).toBe("");
    expect(await use(answer.access_token)).toBe("revoked-key");
  });

  test("each refusal has its problem", async () => {
    const pending = await signUpOnly();
    const { email } = ada;
    const password = "not the right password";
    const badToken = "0".repeat(40);
    const cases = {
      "a wrong password": [logIn, { email, password }, "invalid-credentials"],
      "an unknown address": [logIn, { email: freshEmail(), password }, "invalid-credentials"],
      "a wrong password of a pending sign-up": [logIn, { ...pending, password }, "invalid-credentials"],
      "the right password of a pending sign-up": [logIn, pending, "email-not-verified"],
      "an account of others": [logIn, { email, password: ada.password, account_id: "acc_other" }, "forbidden"],
      "a taken address": [signUp, { email, password }, "email-already-registered"],
      "a pending address": [signUp, { ...pending, password }, "email-already-registered"],
      "a common password": [signUp, { email: freshEmail(), password: "qwertyuiop" }, "validation-failed"],
      "an invalid verification token": [verifyEmail, { token: badToken }, "invalid-auth-token"],
      "an invalid magic link": [consumeMagicLink, { token: badToken }, "invalid-auth-token"],
      "an invalid reset link": [confirmPasswordReset, { token: badToken, password }, "invalid-auth-token"],
      "an invalid refresh token": [refresh, { refresh_token: "phr_nobody" }, "invalid-auth-token"],
    } as const;
    const found = Object.entries(cases).map(async ([name, [method, request]]) => {
      const { slug, extensions } = await gateway.call(transport, method, request);
      return [name, slug, extensions];
    });
    const expected = Object.entries(cases).map(([name, [, , slug]]) => [name, slug, {}]);
    expect(await Promise.all(found)).toEqual(expected);
  });
});

test("a wrong password and an unknown address have the same answer", async () => {
  const told = async (email: string) => {
    const { answer } = await logInAs({ email, password: "not the right password" });
    return { ...answer, instance: undefined };
  };
  expect(await told(freshEmail())).toEqual(await told(ada.email));
});

describe("a sign-up", () => {
  test("sends another link when repeated, which requires the password and replaces the older links", async () => {
    const { email, password: first } = await signUpOnly();
    const stale = await mailToken(email);
    const repeated = { email: email.toUpperCase(), password: "somebody else's choice" };
    expect((await gateway.call("REST", signUp, repeated)).slug).toBe("email-already-registered");
    const token = await mailToken(email);
    const password = "the choice of the mailbox's owner";
    expect((await gateway.call("REST", verifyEmail, { token: stale, password })).slug).toBe("invalid-auth-token");
    const bare = await gateway.call("REST", verifyEmail, { token });
    expect([bare.slug, bare.answer.errors]).toMatchObject(["validation-failed", [{ field: "password" }]]);
    expect((await gateway.call("REST", verifyEmail, { token, password })).slug).toBe("");
    for (const wrong of [first, repeated.password])
      expect((await logInAs({ email, password: wrong })).slug).toBe("invalid-credentials");
    expect((await logInAs({ email, password })).slug).toBe("");
  });

  test("requires the password also when repeated before the first link is mailed", async () => {
    const who = { email: freshEmail(), password: goodPassword };
    await Promise.all([gateway.call("REST", signUp, who), gateway.call("REST", signUp, who)]);
    await expect.poll(() => gateway.mailbox.waiting(who.email).length).toBe(2);
    const tokens = [await mailToken(who.email), await mailToken(who.email)];
    for (const token of tokens) expect((await gateway.call("REST", verifyEmail, { token })).slug).not.toBe("");
  });

  test("is verified once, and its link sets no password afterwards", async () => {
    const { email, password } = await signUpOnly();
    const token = await mailToken(email);
    const magic = await linkFor(email, requestMagicLink);
    expect((await gateway.call("REST", consumeMagicLink, { token: magic })).slug).toBe("");
    expect((await gateway.call("REST", verifyEmail, { token, password })).slug).toBe("invalid-auth-token");
    expect((await logInAs({ email, password })).slug).toBe("invalid-credentials");
  });

  test("expires after a day", async () => {
    const { email, password } = await signUpOnly();
    const token = await mailToken(email);
    const [pending, inTime] = [await signUpOnly(), await mailToken((await signUpOnly()).email)];
    gateway.pass(day - minute);
    expect((await gateway.call("REST", verifyEmail, { token: inTime })).slug).toBe("");
    expect((await gateway.call("REST", signUp, pending)).slug).toBe("email-already-registered");
    gateway.pass(minute);
    expect((await gateway.call("REST", verifyEmail, { token })).slug).toBe("invalid-auth-token");
    expect((await logInAs({ email, password })).slug).toBe("invalid-credentials");
    expect((await gateway.call("REST", signUp, { email, password })).slug).toBe("");
  });

  test("succeeds once when it is attempted many times at once", async () => {
    const who = { email: freshEmail(), password: goodPassword };
    const all = await Promise.all(Array.from({ length: 10 }, () => gateway.call("REST", signUp, who)));
    expect(all.filter(({ slug }) => slug === "")).toHaveLength(1);
    expect(all.filter(({ slug }) => slug === "email-already-registered")).toHaveLength(9);
  });
});

describe("a magic link", () => {
  test("logs in once, within 15 minutes", async () => {
    const token = await linkFor(ada.email, requestMagicLink);
    gateway.pass(14 * minute);
    const { answer } = await gateway.call("REST", consumeMagicLink, { token });
    expect(await use(answer.access_token)).toBe("");
    expect((await gateway.call("REST", consumeMagicLink, { token })).slug).toBe("invalid-auth-token");
    const late = await linkFor(ada.email, requestMagicLink);
    gateway.pass(900_000);
    expect((await gateway.call("REST", consumeMagicLink, { token: late })).slug).toBe("invalid-auth-token");
  });

  test("verifies a pending sign-up but not its password, which may be another person's", async () => {
    const { email, password } = await signUpOnly();
    await mailToken(email);
    const token = await linkFor(email, requestMagicLink);
    expect((await gateway.call("REST", consumeMagicLink, { token })).slug).toBe("");
    expect((await logInAs({ email, password })).slug).toBe("invalid-credentials");
  });

  test("has the same answer for an address without a user", async () => {
    const nobody = freshEmail();
    const { slug, answer } = await gateway.call("REST", requestMagicLink, { email: nobody });
    expect([slug, answer]).toEqual(["", { email: nobody, valid_seconds: 900 }]);
    await linkFor(ada.email, requestMagicLink);
    expect(gateway.mailbox.waiting(nobody)).toEqual([]);
  });
});

test("a password reset sets a new password once, and ends all logins", async () => {
  const person = await gateway.signUp();
  const token = await linkFor(person.email, requestPasswordReset);
  const common = await gateway.call("REST", confirmPasswordReset, { token, password: "qwertyuiop" });
  expect(common.answer).toMatchObject({ errors: [{ field: "password" }] });
  const password = "another good password";
  expect((await gateway.call("REST", confirmPasswordReset, { token, password })).slug).toBe("");
  expect((await gateway.mailbox.next(person.email)).subject).toBe("Your password was changed");
  expect(await use(person.accessToken)).toBe("revoked-key");
  expect((await logInAs(person)).slug).toBe("invalid-credentials");
  expect((await logInAs({ ...person, password })).slug).toBe("");
  expect((await gateway.call("REST", confirmPasswordReset, { token, password })).slug).toBe("invalid-auth-token");
});

describe("the e-mail about a new password", () => {
  const keysOf = (answers: readonly Outcome[]) => answers.map(({ slug }) => slug);
  const useKeys = (keys: readonly string[]) =>
    Promise.all(keys.map((token) => gateway.call("REST", ProfileService.method.list, {}, { token }))).then(keysOf);

  /** Creates a user who has two keys, one made with the other, and then sets a new password by a link. */
  async function scene() {
    const person = await gateway.signUp();
    const create = async (name: string, token: string) =>
      (await gateway.call("REST", ApiKeyService.method.create, { name }, { token })).answer.key as string;
    const first = await create("nightly checks", person.accessToken);
    const keys = [first, await create("made by it", first)];
    const token = await linkFor(person.email, requestPasswordReset);
    const password = "the phrase that nobody has seen";
    expect((await gateway.call("REST", confirmPasswordReset, { token, password })).slug).toBe("");
    const mail = await mailAbout(gateway.mailbox, person.email, "Your password was changed");
    const [link = ""] = mail.links.filter((each) => each.includes("/auth/keys#"));
    return { ...person, password, keys, mail, link: link.split("#")[1] ?? "" };
  }
  const revoke = async (token: string) => (await gateway.call("REST", revokeKeys, { token })).slug;

  test("lists the user's active keys, and revokes them once by a link", async () => {
    const { keys, mail, link, ...person } = await scene();
    for (const key of keys) expect(mail.text).toContain(key.slice(0, 16));
    expect(mail.text).toContain("nightly checks");
    expect(await useKeys(keys)).toEqual(["", ""]);
    expect(await revoke(link)).toBe("");
    expect(await useKeys(keys)).toEqual(["revoked-key", "revoked-key"]);
    expect(await revoke(link)).toBe("invalid-auth-token");
    const { answer } = await logInAs(person);
    const { data } = (await restClient({ url: gateway.url, key: answer.access_token })("/v1/account/audit-log")).body;
    const revocations = data.filter(({ action }: { action: string }) => action === "api_key.revoke");
    expect(revocations).toHaveLength(2);
    expect(await useKeys([gateway.app.developerKey ?? ""])).toEqual([""]);
  });

  test("has a link that is valid for 72 hours, despite later changes", async () => {
    const [late, inTime] = [await scene(), await scene()];
    const token = await linkFor(inTime.email, requestPasswordReset);
    const password = "the phrase of a thief of mailboxes";
    expect((await gateway.call("REST", confirmPasswordReset, { token, password })).slug).toBe("");
    gateway.pass(3 * day - minute);
    expect(await revoke(inTime.link)).toBe("");
    gateway.pass(minute);
    expect(await revoke(late.link)).toBe("invalid-auth-token");
    expect(await useKeys(late.keys)).toEqual(["", ""]);
  });

  test("has no link when the user has no keys", async () => {
    const { email } = await gateway.signUp();
    const token = await linkFor(email, requestPasswordReset);
    await gateway.call("REST", confirmPasswordReset, { token, password: "the phrase that nobody has seen" });
    const { links } = await mailAbout(gateway.mailbox, email, "Your password was changed");
    expect(links.filter((link) => link.includes("#"))).toEqual([]);
  });
});

test("a password reset link is valid for 30 minutes, and costs no hash afterwards", async () => {
  const eve = await gateway.signUp();
  const inTime = await linkFor(eve.email, requestPasswordReset);
  gateway.pass(29 * minute);
  const password = "a password that is new";
  expect((await gateway.call("REST", confirmPasswordReset, { token: inTime, password })).slug).toBe("");
  const token = await linkFor(ada.email, requestPasswordReset);
  gateway.pass(30 * minute);
  const countHashes = () => gateway.app.metrics.getSingleMetric("pilothouse_password_hashes_total")?.get();
  const before = await countHashes();
  const late = await gateway.call("REST", confirmPasswordReset, { token, password: "another good password" });
  expect(late.slug).toBe("invalid-auth-token");
  expect(await countHashes()).toEqual(before);
});

test("a password reset invalidates the links that were sent before", async () => {
  const { email } = await gateway.signUp();
  const magic = await linkFor(email, requestMagicLink);
  const [first, token] = [await linkFor(email, requestPasswordReset), await linkFor(email, requestPasswordReset)];
  const password = "another good password";
  expect((await gateway.call("REST", confirmPasswordReset, { token, password })).slug).toBe("");
  expect((await gateway.call("REST", confirmPasswordReset, { token: first, password })).slug).toBe(
    "invalid-auth-token",
  );
  expect((await gateway.call("REST", consumeMagicLink, { token: magic })).slug).toBe("invalid-auth-token");
});

test("a link is valid only for its purpose", async () => {
  const { email } = await signUpOnly();
  const uses = { verify: verifyEmail, magic: consumeMagicLink, reset: confirmPasswordReset };
  const tokens = {
    verify: await mailToken(email),
    magic: await linkFor(email, requestMagicLink),
    reset: await linkFor(email, requestPasswordReset),
  };
  for (const [kind, token] of Object.entries(tokens)) {
    for (const [use, method] of Object.entries(uses).filter(([name]) => name !== kind)) {
      const more = method === confirmPasswordReset ? { password: "another good password" } : {};
      const { slug } = await gateway.call("REST", method, { token, ...more });
      expect([kind, use, slug]).toEqual([kind, use, "invalid-auth-token"]);
    }
  }
  expect((await gateway.call("REST", verifyEmail, { token: tokens.verify })).slug).toBe("");
});

test("logging out everywhere ends all logins of the user", async () => {
  const person = await gateway.signUp();
  const { answer } = await logInAs(person);
  expect((await gateway.call("REST", logOut, { everywhere: true }, { token: answer.access_token })).slug).toBe("");
  expect(await use(person.accessToken)).toBe("revoked-key");
  const refreshed = await gateway.call("REST", refresh, { refresh_token: person.refreshToken });
  expect(refreshed.slug).toBe("invalid-auth-token");
});

describe("a refresh token", () => {
  const refreshBy = (token: string) => gateway.call("REST", refresh, { refresh_token: token });

  test("returns the next pair, and repeats it for 10 seconds while it is unused", async () => {
    const person = await gateway.signUp();
    const all = await Promise.all(Array.from({ length: 20 }, () => refreshBy(person.refreshToken)));
    const [first] = all;
    expect(new Set(all.map(({ answer }) => JSON.stringify(answer))).size).toBe(1);
    expect(await use(first?.answer.access_token)).toBe("");
    const unused = await gateway.signUp();
    const { answer: next } = await refreshBy(unused.refreshToken);
    gateway.pass(5_000);
    expect((await refreshBy(unused.refreshToken)).answer).toEqual(next);
    gateway.pass(6_000);
    expect((await refreshBy(person.refreshToken)).slug).toBe("invalid-auth-token");
    expect(await use(first?.answer.access_token)).toBe("revoked-key");
    expect((await refreshBy(first?.answer.refresh_token)).slug).toBe("invalid-auth-token");
  });

  test("ends the login when it is used after its successor", async () => {
    const person = await gateway.signUp();
    const { answer: second } = await refreshBy(person.refreshToken);
    const { answer: third } = await refreshBy(second.refresh_token);
    expect(await use(third.access_token)).toBe("");
    expect((await refreshBy(person.refreshToken)).slug).toBe("invalid-auth-token");
    expect(await use(third.access_token)).toBe("revoked-key");
  });

  test("is invalid without its secret, as is an access token", async () => {
    const { accessToken, refreshToken } = await gateway.signUp();
    const forge = (token: string) => token.replace(/_[^_]*$/, `_${"0".repeat(40)}`);
    expect((await refreshBy(forge(refreshToken))).slug).toBe("invalid-auth-token");
    expect(await use(forge(accessToken))).toBe("invalid-key");
    expect(await use(accessToken)).toBe("");
    expect((await refreshBy(refreshToken)).slug).toBe("");
  });

  test("expires 30 days after its last use, and its login after 180 days", async () => {
    const person = await gateway.signUp();
    gateway.pass(14 * minute);
    expect(await use(person.accessToken)).toBe("");
    gateway.pass(minute);
    expect(await use(person.accessToken)).toBe("expired-key");
    let { refreshToken } = person;
    for (let month = 0; month < 7; month += 1) {
      gateway.pass(29 * day);
      const { slug, answer } = await refreshBy(refreshToken);
      expect([month, slug]).toEqual([month, month < 6 ? "" : "invalid-auth-token"]);
      refreshToken = answer.refresh_token;
    }
    const idle = await gateway.signUp();
    gateway.pass(30 * day);
    expect((await refreshBy(idle.refreshToken)).slug).toBe("invalid-auth-token");
  });
});

test("a login from a new device sends an e-mail unless it is the first login", async () => {
  const person = await gateway.signUp();
  const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
  const from = "203.0.113.77";
  for (const userAgent of [firefox, firefox.replaceAll("140", "141")]) await logInAs(person, { from, userAgent });
  const { subject, text } = await gateway.mailbox.next(person.email);
  expect(subject).toBe("A login from a new device");
  expect(text).toContain("Firefox on Linux");
  await gateway.call("REST", requestMagicLink, { email: person.email });
  expect((await gateway.mailbox.next(person.email)).subject).toBe("Your login link");
});
