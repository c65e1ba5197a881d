import type { DescMethodUnary, JsonValue } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuthService } from "../../../src/gen/pilothouse/v1/auth_pb.ts";
import { LoginService } from "../../../src/gen/pilothouse/v1/login_pb.ts";
import { MfaService } from "../../../src/gen/pilothouse/v1/mfa_pb.ts";
import { authenticatorOf, codeStep } from "../../support/authenticator.ts";
import { sampledTransports } from "../../support/long-test.ts";
import type { Person } from "../../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import { restClient } from "../../support/rest.ts";
import type { TransportName } from "../../support/transport-calls.ts";

const { stepUp, enrolTotp, confirmTotp, removeTotp } = MfaService.method;
const stepUpRequired = { slug: "mfa-step-up-required", extensions: { requires_mfa_step_up: "true" } };
const day = 86_400_000;

let gateway: PeopleGateway;
beforeAll(async () => {
  gateway = await startPeopleGateway();
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

/** A user with an authenticator app. */
interface Enrolled extends Person {
  readonly codeAt: (time: number) => string;
  /** The code that confirmed the enrolment. */
  readonly usedCode: string;
  readonly recoveryCodes: readonly string[];
}

async function enrol(transport: TransportName = "REST", person?: Person): Promise<Enrolled> {
  const { accessToken: token, password, ...rest } = person ?? (await gateway.signUp());
  const { answer } = await gateway.call(transport, enrolTotp, { password }, { token });
  expect(new URL(answer.otpauth_url).searchParams.get("secret")).toBe(answer.secret);
  const codeAt = authenticatorOf(answer.otpauth_url);
  const usedCode = codeAt(gateway.now());
  const confirmed = await gateway.call(transport, confirmTotp, { code: usedCode }, { token });
  expect((await gateway.mailbox.next(rest.email)).subject).toBe("An authenticator app was added");
  return { ...rest, password, accessToken: token, codeAt, usedCode, recoveryCodes: confirmed.answer.recovery_codes };
}

/** Waits for the e-mail with a subject, and skips other e-mails. */
async function mailAbout(email: string, wanted: string): Promise<void> {
  let subject = "";
  while (subject !== wanted) ({ subject } = await gateway.mailbox.next(email));
}

describe.each(sampledTransports)("over %s", (transport) => {
  test("a second factor is enrolled, required, listed and removed", async () => {
    const person = await enrol(transport);
    expect(new Set(person.recoveryCodes).size).toBe(10);
    const { email, password } = person;
    const { answer } = await gateway.call(transport, AuthService.method.logIn, { email, password });
    expect(answer.mfa_enrolled).toBe(true);
    const shown = { token: answer.access_token };
    expect(await gateway.call(transport, removeTotp, {}, shown)).toMatchObject(stepUpRequired);
    const code = person.codeAt(gateway.now() + codeStep);
    expect((await gateway.call(transport, stepUp, { code }, shown)).answer).toMatchObject({ recovery_codes_left: 10 });
    expect((await gateway.call(transport, removeTotp, {}, shown)).slug).toBe("");
    expect((await gateway.call(transport, removeTotp, {}, shown)).slug).toBe("not-found");
  });

  test("each refusal has its problem", async () => {
    const plain = await gateway.signUp();
    const { accessToken: token } = plain;
    const code = "000000";
    const refused = async (method: DescMethodUnary, request: JsonValue) =>
      (await gateway.call(transport, method, request, { token })).slug;
    expect(await refused(stepUp, { code })).toBe("conflict");
    expect(await refused(confirmTotp, { code })).toBe("conflict");
    expect(await refused(enrolTotp, { password: "not the right password" })).toBe("invalid-credentials");
    const person = await enrol(transport, plain);
    expect(await refused(enrolTotp, { password: person.password })).toBe("conflict");
    expect(await refused(stepUp, { code: person.usedCode })).toBe("invalid-credentials");
    expect(await refused(stepUp, { code: "00000-00000" })).toBe("invalid-credentials");
    const withKey = await gateway.call(transport, stepUp, { code }, { token: gateway.app.developerKey });
    expect(withKey.slug).toBe("forbidden");
  });
});

test("a step-up is valid for 10 minutes, for its token and the tokens refreshed from it", async () => {
  const person = await enrol();
  const { email, password } = person;
  const other = await gateway.call("REST", AuthService.method.logIn, { email, password });
  const refreshed = await gateway.call("REST", AuthService.method.refresh, { refresh_token: person.refreshToken });
  const { access_token: token } = refreshed.answer;
  const endNone = (shown: string) =>
    gateway.call("REST", LoginService.method.end, { id: "lgn_none" }, { token: shown }).then(({ slug }) => slug);
  expect(await endNone(token)).toBe("not-found");
  expect(await endNone(other.answer.access_token)).toBe("mfa-step-up-required");
  gateway.pass(540_000);
  expect(await endNone(token)).toBe("not-found");
  gateway.pass(60_000);
  expect(await endNone(token)).toBe("mfa-step-up-required");
});

test("an enrolment without confirmation expires after 10 minutes", async () => {
  const { accessToken: token, password } = await gateway.signUp();
  const { answer } = await gateway.call("REST", enrolTotp, { password }, { token });
  const confirm = async (code: string) => (await gateway.call("REST", confirmTotp, { code }, { token })).slug;
  gateway.pass(540_000);
  expect(await confirm("000000")).toBe("invalid-credentials");
  gateway.pass(60_000);
  expect(await confirm(authenticatorOf(answer.otpauth_url)(gateway.now()))).toBe("conflict");
});

test("a code is valid one time step early or late, but not after a later one (RFC 6238, 5.2)", async () => {
  const person = await enrol();
  const { email, password } = person;
  const { answer } = await gateway.call("REST", AuthService.method.logIn, { email, password });
  const shown = { token: answer.access_token };
  const show = async (code: string) => (await gateway.call("REST", stepUp, { code }, shown)).slug;
  // One step after all used codes, at half of the step, so that the step does not end during the test.
  gateway.pass(5.5 * codeStep - (gateway.now() % codeStep));
  const codes = [-2, -1, 0, 1, 2].map((steps) => person.codeAt(gateway.now() + steps * codeStep));
  const [old = "", late = "", present = "", early = "", future = ""] = codes;
  expect([await show(old), await show(future)]).toEqual(["invalid-credentials", "invalid-credentials"]);
  expect([await show(late), await show(present), await show(early)]).toEqual(["", "", ""]);
  expect([await show(late), await show(present), await show(early)]).toEqual(Array(3).fill("invalid-credentials"));
});

test("a code or recovery code succeeds once when it is used many times at once", async () => {
  const person = await enrol();
  const { email, password } = person;
  let token = person.accessToken;
  const [recoveryCode = ""] = person.recoveryCodes;
  for (const code of [person.codeAt(gateway.now() + codeStep), recoveryCode]) {
    const tries = Array.from({ length: 30 }, () => gateway.call("REST", stepUp, { code }, { token }));
    const slugs = (await Promise.all(tries)).map(({ slug }) => slug);
    expect(slugs.filter((slug) => slug === "")).toHaveLength(1);
    expect(new Set(slugs)).toEqual(new Set(["", "invalid-credentials", "rate-limited"]));
    gateway.pass(3_600_000);
    // The access token has expired.
    const { answer } = await gateway.call("REST", AuthService.method.logIn, { email, password });
    token = answer.access_token;
  }
  await mailAbout(email, "A recovery code was used");
});

test("a user has 10 tries at codes an hour", async () => {
  const person = await enrol();
  const shown = { token: person.accessToken };
  const tryCode = (code: string) => gateway.call("REST", stepUp, { code }, shown);
  for (let tried = 0; tried < 10; tried += 1) expect((await tryCode("00000-00000")).slug).toBe("invalid-credentials");
  const { slug, extensions, headers } = await tryCode(person.codeAt(gateway.now() + codeStep));
  expect(slug).toBe("rate-limited");
  const wait = Number(extensions.retry_after_seconds);
  expect([wait > 3_000, wait <= 3_600]).toEqual([true, true]);
  expect(headers.get("retry-after")).toBe(extensions.retry_after_seconds);
});

test("a user lists logins, and ends one of them", async () => {
  const person = await gateway.signUp();
  const { email, password } = person;
  const second = await gateway.call(
    "REST",
    AuthService.method.logIn,
    { email, password },
    { userAgent: "curl/8.15.0" },
  );
  const shown = { token: person.accessToken };
  const list = async () => (await gateway.call("REST", LoginService.method.list, {}, shown)).answer.data;
  const [newest, first] = await list();
  expect(newest).toMatchObject({ current: false, user_agent: "curl/8.15.0" });
  expect(first).toMatchObject({ current: true });
  expect((await gateway.call("REST", LoginService.method.end, { id: newest.id }, shown)).slug).toBe("");
  const ended = await gateway.call("REST", LoginService.method.list, {}, { token: second.answer.access_token });
  expect(ended.slug).toBe("revoked-key");
  expect(await list()).toHaveLength(1);
  const stranger = await gateway.signUp();
  const foreign = await gateway.call(
    "REST",
    LoginService.method.end,
    { id: first.id },
    { token: stranger.accessToken },
  );
  expect(foreign.slug).toBe("not-found");
});

test("the operator removes a lost second factor a day after an e-mail, unless it is used before", async () => {
  const [loser, keeper] = [await enrol(), await enrol()];
  const asLogin = async ({ email, password }: Person) => {
    const { answer } = await gateway.call("REST", AuthService.method.logIn, { email, password });
    return { isEnrolled: answer.mfa_enrolled, token: String(answer.access_token) };
  };
  // The e-mail of the second order proves that due removals have run a third of a day after the first.
  for (const { email } of [loser, keeper]) {
    await gateway.admin("remove-mfa", "--user", email);
    gateway.pass(day / 3);
    await mailAbout(email, "Your authenticator app will be removed");
  }
  expect((await asLogin(loser)).isEnrolled).toBe(true);
  const { token } = await asLogin(keeper);
  const code = keeper.codeAt(gateway.now() + codeStep);
  expect((await gateway.call("REST", stepUp, { code }, { token })).slug).toBe("");
  gateway.pass(day);
  await mailAbout(loser.email, "Your authenticator app was removed");
  const after = await asLogin(loser);
  expect([after.isEnrolled ?? false, (await asLogin(keeper)).isEnrolled]).toEqual([false, true]);
  const { data } = (await restClient({ url: gateway.url, key: after.token })("/v1/account/audit-log")).body;
  const told = data.map(({ action, actor }: { action: string; actor: { type: string } }) => `${actor.type} ${action}`);
  // The operator's clock differs from the test's, so the log has another order.
  expect(told.filter((each: string) => each.includes("totp.")).toSorted()).toEqual([
    "operator totp.order_delete",
    "system totp.delete",
    "user totp.begin",
    "user totp.create",
  ]);
  await expect(gateway.admin("remove-mfa", "--user", loser.email)).rejects.toThrow("has no second factor");
}, 120_000);
