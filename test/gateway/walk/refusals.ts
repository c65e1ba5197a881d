import type { DescMethod } from "@bufbuild/protobuf";
import { expect } from "vitest";
import { ApiKeyService } from "../../../src/gen/pilothouse/v1/api_key_pb.ts";
import { AuthService } from "../../../src/gen/pilothouse/v1/auth_pb.ts";
import { LegalService } from "../../../src/gen/pilothouse/v1/legal_pb.ts";
import { LoginService } from "../../../src/gen/pilothouse/v1/login_pb.ts";
import { MfaService } from "../../../src/gen/pilothouse/v1/mfa_pb.ts";
import { OAuthService } from "../../../src/gen/pilothouse/v1/oauth_pb.ts";
import { ProfileService } from "../../../src/gen/pilothouse/v1/profile_pb.ts";
import { SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { TeamService } from "../../../src/gen/pilothouse/v1/team_pb.ts";
import type { Override } from "../../../src/kernel/entitlement.ts";
import { createArrangements } from "../../../src/limits/arrangements.ts";
import type { ErrorSlug } from "../../../src/platform/error-table.ts";
import { strangeKey } from "../../e2e/support/accounts.ts";
import { authenticatorOf } from "../../support/authenticator.ts";
import { clockAt } from "../../support/clock-at.ts";
import { freshEmail, goodPassword, type Person, tokenOfMail } from "../../support/people.ts";
import type { PeopleGateway, Shown } from "../../support/people-gateway.ts";
import { restClient } from "../../support/rest.ts";

/** Refused request in REST JSON. */
export interface Refused {
  readonly method: DescMethod;
  readonly request?: object;
  readonly shown?: Shown;
}

export interface Refusal {
  readonly slug: ErrorSlug;
  readonly why: string;
  /** All extensions, as text. */
  readonly extensions?: Readonly<Record<string, unknown>>;
  /** Retry delay of the response: seconds, or `true` for those of its extension. */
  readonly comesAgain?: number | true;
  prepare(gateway: PeopleGateway): Promise<Refused>;
}

const { list: listProfiles, create: createProfile } = ProfileService.method;
const { signUp, logIn, verifyEmail, consumeMagicLink, confirmPasswordReset, refresh } = AuthService.method;
const { create: createSession, list: listSessions } = SessionService.method;
const { stepUp, enrolTotp } = MfaService.method;
const quarter = 900_000;
const someCount = expect.stringMatching(/^[1-9]\d*$/);

const withToken = (token: string | undefined, method: DescMethod = listProfiles, request = {}): Refused => ({
  method,
  request,
  shown: { token },
});
const withoutToken = (method: DescMethod, request: object): Refused => ({ method, request });

async function keyOf({ rest }: Person, choice: object = {}): Promise<{ id: string; key: string }> {
  return (await rest("/v1/api-keys", { name: "walker", ...choice })).body;
}

async function enrolled(gateway: PeopleGateway): Promise<Person> {
  const person = await gateway.signUp();
  const { body } = await person.rest("/v1/auth/mfa/totp", { password: goodPassword });
  await person.rest("/v1/auth/mfa/totp/confirm", { code: authenticatorOf(body.otpauth_url)(gateway.now()) });
  return person;
}

/** Overrides a limit of an account. */
export async function arrange(
  { app, now }: PeopleGateway,
  { accountId }: Person,
  override: Pick<Override, "limit" | "value" | "refillPerMinute">,
): Promise<void> {
  const arrangements = createArrangements({ clock: clockAt(now), bus: app.bus });
  const expiresAt = new Date(now() + quarter).toISOString();
  await app.db.transaction((tx) => arrangements.override(tx, accountId, { ...override, expiresAt }));
}

/** Repeats a call until it is rate-limited, then returns the call. */
async function untilLimited(gateway: PeopleGateway, refused: Refused): Promise<Refused> {
  const { method, request = {}, shown } = refused;
  for (let made = 0; made < 100; made += 1) {
    const { slug } = await gateway.call("REST", method, Object(request), shown);
    if (slug !== "rate-limited") continue;
    // Sets the clock back, so that no token is added before the tested call, even on a slow machine.
    gateway.pass(-60_000);
    return refused;
  }
  throw new Error("the bucket is never empty");
}

/** Signs up and repeats an action until a limit of the account is reached. */
async function exhausted(
  gateway: PeopleGateway,
  times: number,
  run: (person: Person) => Promise<unknown>,
): Promise<Person> {
  const person = await gateway.signUp();
  for (let done = 0; done < times; done += 1) await run(person);
  return person;
}

let addresses = 0;
const freshAddress = (): string => {
  addresses += 1;
  return `203.0.113.${addresses}`;
};

const mailedToken = async ({ url, mailbox }: PeopleGateway, path: string, email: string): Promise<string> => {
  await restClient({ url, key: "" })(`/v1/auth/${path}/request`, { email });
  return tokenOfMail(mailbox, email);
};

const token =
  (form: object): Refusal["prepare"] =>
  async () =>
    withoutToken(OAuthService.method.token, form);

/** Refusals for missing credentials, missing permissions and exceeded limits. */
export const refusals: readonly Refusal[] = [
  { slug: "unauthorized", why: "no bearer", prepare: async () => withToken(undefined) },
  { slug: "invalid-key", why: "an unknown key", prepare: async () => withToken(strangeKey()) },
  { slug: "invalid-key", why: "another prefix", prepare: async () => withToken(`sk_${strangeKey().slice(4)}`) },
  {
    slug: "revoked-key",
    why: "a key that was revoked",
    async prepare(gateway) {
      const person = await gateway.signUp();
      const { id, key } = await keyOf(person);
      await person.rest(`/v1/api-keys/${id}`, undefined, { method: "DELETE" });
      return withToken(key);
    },
  },
  {
    slug: "revoked-key",
    why: "a login that has ended",
    async prepare(gateway) {
      const { rest, accessToken } = await gateway.signUp();
      await rest("/v1/auth/logout", {});
      return withToken(accessToken);
    },
  },
  {
    slug: "expired-key",
    why: "a key past its expiry",
    async prepare(gateway) {
      const expires_at = new Date(gateway.now() + quarter).toISOString();
      const { key } = await keyOf(await gateway.signUp(), { expires_at });
      gateway.pass(quarter);
      return withToken(key);
    },
  },
  {
    slug: "expired-key",
    why: "an access token older than 15 minutes",
    async prepare(gateway) {
      const { accessToken } = await gateway.signUp();
      gateway.pass(quarter);
      return withToken(accessToken);
    },
  },
  {
    slug: "invalid-auth-token",
    why: "a malformed token",
    prepare: async () => withoutToken(verifyEmail, { token: "x" }),
  },
  {
    slug: "invalid-auth-token",
    why: "a magic link that was used",
    async prepare(gateway) {
      const { email } = await gateway.signUp();
      const used = await mailedToken(gateway, "magic-link", email);
      await gateway.call("REST", consumeMagicLink, { token: used });
      return withoutToken(consumeMagicLink, { token: used });
    },
  },
  {
    slug: "invalid-auth-token",
    why: "a password reset older than half an hour",
    async prepare(gateway) {
      const { email } = await gateway.signUp();
      const late = await mailedToken(gateway, "password-reset", email);
      gateway.pass(2 * quarter);
      return withoutToken(confirmPasswordReset, { token: late, password: goodPassword });
    },
  },
  {
    slug: "invalid-auth-token",
    why: "an unknown refresh token",
    prepare: async () => withoutToken(refresh, { refresh_token: "phr_none" }),
  },
  {
    slug: "invalid-auth-token",
    why: "an unknown invite",
    async prepare(gateway) {
      const { accessToken } = await gateway.signUp();
      return withToken(accessToken, TeamService.method.acceptInvite, { token: "none" });
    },
  },
  {
    slug: "email-not-verified",
    why: "the right password of an unverified address",
    async prepare(gateway) {
      const who = { email: freshEmail(), password: goodPassword };
      await gateway.call("REST", signUp, who);
      return withoutToken(logIn, who);
    },
  },
  {
    slug: "invalid-credentials",
    why: "a wrong password",
    async prepare(gateway) {
      const { email } = await gateway.signUp();
      return withoutToken(logIn, { email, password: `not ${goodPassword}` });
    },
  },
  {
    slug: "invalid-credentials",
    why: "an unknown address",
    prepare: async () => withoutToken(logIn, { email: freshEmail(), password: goodPassword }),
  },
  {
    slug: "invalid-credentials",
    why: "a wrong code",
    prepare: async (gateway) => withToken((await enrolled(gateway)).accessToken, stepUp, { code: "00000-00000" }),
  },
  {
    slug: "email-already-registered",
    why: "a registered address",
    async prepare(gateway) {
      const { email, password } = await gateway.signUp();
      return withoutToken(signUp, { email, password });
    },
  },
  {
    slug: "forbidden",
    why: "a key without the scope",
    async prepare(gateway) {
      const { key } = await keyOf(await gateway.signUp(), { scopes: ["sessions:read"] });
      return withToken(key);
    },
  },
  {
    slug: "forbidden",
    why: "a key for a method that needs a login",
    prepare: async ({ app }) => withToken(app.developerKey, enrolTotp, { password: goodPassword }),
  },
  {
    slug: "forbidden",
    why: "a key used from an address that is not on its list",
    async prepare(gateway) {
      const { key } = await keyOf(await gateway.signUp(), { addresses: ["203.0.113.0/24"] });
      return { method: listProfiles, shown: { token: key, from: "198.51.100.1" } };
    },
  },
  {
    slug: "mfa-step-up-required",
    why: "a login without a step-up",
    extensions: { requires_mfa_step_up: "true" },
    async prepare(gateway) {
      const { email, password } = await enrolled(gateway);
      const { answer } = await gateway.call("REST", logIn, { email, password });
      return withToken(answer.access_token, LoginService.method.end, { id: "none" });
    },
  },
  {
    slug: "conflict",
    why: "a second factor that the user already has",
    prepare: async (gateway) => withToken((await enrolled(gateway)).accessToken, enrolTotp, { password: goodPassword }),
  },
  {
    slug: "conflict",
    why: "unknown terms",
    prepare: async ({ app }) => withToken(app.developerKey, LegalService.method.acceptLegal, { revision_id: "none" }),
  },
  {
    slug: "not-found",
    why: "a key of another account",
    async prepare(gateway) {
      const { id } = await keyOf(await gateway.signUp());
      return withToken((await gateway.signUp()).accessToken, ApiKeyService.method.revoke, { id });
    },
  },
  {
    slug: "unauthorized",
    why: "an unknown OAuth client",
    extensions: { error: "invalid_client" },
    prepare: token({ grant_type: "client_credentials", client_id: "key_none", client_secret: "none" }),
  },
  {
    slug: "bad-request",
    why: "an unknown refresh token of an OAuth client",
    extensions: { error: "invalid_grant" },
    prepare: token({ grant_type: "refresh_token", refresh_token: "phr_none" }),
  },
  {
    slug: "bad-request",
    why: "an unsupported grant type",
    extensions: { error: "unsupported_grant_type" },
    prepare: token({ grant_type: "password" }),
  },
  {
    slug: "rate-limited",
    why: "an account that sends too many requests",
    extensions: { retry_after_seconds: someCount },
    comesAgain: true,
    async prepare(gateway) {
      const person = await gateway.signUp();
      await arrange(gateway, person, { limit: "global", value: 1, refillPerMinute: 1 });
      return untilLimited(gateway, withToken(person.accessToken, listSessions));
    },
  },
  {
    slug: "rate-limited",
    why: "an account that creates too many sessions",
    extensions: { retry_after_seconds: someCount },
    comesAgain: true,
    async prepare(gateway) {
      const person = await gateway.signUp();
      await arrange(gateway, person, { limit: "sessions:create", value: 1, refillPerMinute: 1 });
      return untilLimited(gateway, withToken(person.accessToken, createSession));
    },
  },
  {
    slug: "rate-limited",
    why: "an address that sends too many requests without a key",
    extensions: { retry_after_seconds: someCount },
    comesAgain: true,
    prepare: (gateway) => untilLimited(gateway, { method: listProfiles, shown: { from: freshAddress() } }),
  },
  {
    slug: "rate-limited",
    why: "more login attempts than allowed per address and hour",
    extensions: { retry_after_seconds: someCount },
    comesAgain: true,
    async prepare(gateway) {
      const wrong = { email: freshEmail(), password: "not the right one" };
      for (let tries = 0; tries < 20; tries += 1) await gateway.call("REST", logIn, wrong);
      return withoutToken(logIn, wrong);
    },
  },
  {
    slug: "concurrency-limit",
    why: "one concurrent session more than the tier allows",
    extensions: { current_sessions: "1", limit: "1" },
    async prepare(gateway) {
      const { accessToken } = await exhausted(gateway, 1, ({ rest }) => rest("/v1/sessions", {}));
      return withToken(accessToken, createSession);
    },
  },
  {
    slug: "tier-limit",
    why: "one key more than the tier allows",
    extensions: { current_api_keys: "2", limit: "2" },
    async prepare(gateway) {
      const { accessToken } = await exhausted(gateway, 2, (person) => keyOf(person));
      return withToken(accessToken, ApiKeyService.method.create, { name: "walker" });
    },
  },
  {
    slug: "tier-limit",
    why: "one profile more than the tier allows",
    extensions: { current_profiles: "1", limit: "1" },
    async prepare(gateway) {
      const { accessToken } = await exhausted(gateway, 1, ({ rest }) => rest("/v1/profiles", { name: "Shop" }));
      return withToken(accessToken, createProfile, { name: "Another" });
    },
  },
  {
    slug: "tier-limit",
    why: "an exhausted monthly quota of minutes",
    extensions: { limit: "0", quota: "session_minutes", resets_at: expect.stringMatching(/-01T00:00:00\.000Z$/) },
    async prepare(gateway) {
      const person = await gateway.signUp();
      await arrange(gateway, person, { limit: "session_minutes", value: 0 });
      return withToken(person.accessToken, createSession);
    },
  },
  {
    slug: "storage-quota-exceeded",
    why: "a profile without storage left",
    extensions: { used_bytes: "0", cap_bytes: "0", tier: "free" },
    async prepare(gateway) {
      const person = await gateway.signUp();
      const { id } = (await person.rest("/v1/profiles", { name: "Shop" })).body;
      await arrange(gateway, person, { limit: "profile_storage_bytes", value: 0 });
      return withToken(person.accessToken, createSession, { profile_id: id });
    },
  },
];
