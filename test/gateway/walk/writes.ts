import type { JsonObject } from "@bufbuild/protobuf";
import { authenticatorOf } from "../../support/authenticator.ts";
import type { Mailbox } from "../../support/mailbox.ts";
import { freshEmail, goodPassword, joinTeam, type Person, signUp, tokenOfMail } from "../../support/people.ts";
import { type Rest, restClient } from "../../support/rest.ts";
import { cancelOpenOrder, subscribe, unsubscribe } from "../../support/sandbox.ts";
import { smallRecipe } from "../../support/small-recipe.ts";
import { giveUpDelivery } from "../../webhooks/scene.ts";

/** Environment of the writes. */
export interface WriteScene {
  readonly url: string;
  readonly mailbox: Mailbox;
  /** Key of an account of the highest tier. */
  readonly key: string;
  now(): number;
  /** Publishes new terms and returns their revision ID. */
  publishTerms(): Promise<string>;
}

/** Prepared call with side effects. */
export interface Write {
  readonly request: JsonObject;
  /** Credential of the caller. */
  readonly token?: string | undefined;
  /** Action of the expected audit entry. */
  readonly action: string;
  /** Returns a client of the account whose audit log has the entry, after the call. */
  log(): Promise<Rest>;
}

type Prepare = (scene: WriteScene) => Promise<Write>;

const halfMinute = 30_000;
const anotherPassword = "four wheels and a steady hand";

const restOf = ({ url }: WriteScene, key: string): Rest => restClient({ url, key });
const ownRest = (scene: WriteScene): Rest => restOf(scene, scene.key);

/** Prepares a call by the key, with an entry in its account's log. */
function byKey(action: string, prepare: (rest: Rest, scene: WriteScene) => Promise<JsonObject>): Prepare {
  return async (scene) => {
    const rest = ownRest(scene);
    return { request: await prepare(rest, scene), token: scene.key, action, log: async () => rest };
  };
}

/** Prepares a call by the login of a team member. */
function byMember(action: string, prepare: (person: Person, scene: WriteScene) => Promise<JsonObject>): Prepare {
  return async (scene) => {
    const person = await joinTeam(scene.url, scene.mailbox, ownRest(scene));
    const request = await prepare(person, scene);
    return { request, token: person.accessToken, action, log: async () => ownRest(scene) };
  };
}

/** Prepares a call without a login, with a password or the token of an e-mail. The entry is in the caller's account. */
function byNobody(action: string, prepare: (scene: WriteScene, email: string) => Promise<JsonObject>): Prepare {
  return async (scene) => {
    const email = freshEmail();
    const log = async () => {
      const { body } = await restOf(scene, "")("/v1/auth/login", { email, password: goodPassword });
      return restOf(scene, body.access_token);
    };
    return { request: await prepare(scene, email), action, log };
  };
}

/** Prepares a call without a login by a new user. */
function bySignedUp(action: string, prepare: (person: Person, scene: WriteScene) => Promise<JsonObject>): Prepare {
  return byNobody(action, async (scene, email) => prepare(await signUp(scene.url, scene.mailbox, { email }), scene));
}

const made = async (rest: Rest, path: string, body: object = {}): Promise<JsonObject> => {
  const { id, key } = (await rest(path, body)).body;
  return { id, key };
};
const aboutOne = (path: string, body?: object) => async (rest: Rest) => {
  const { id = "" } = await made(rest, path, body);
  return { id };
};
const session = aboutOne("/v1/sessions");
const agentSession = aboutOne("/v1/agent-sessions");
const apiKey = aboutOne("/v1/api-keys", { name: "walk" });
/** Replaces all active endpoints, since an account may have at most ten. */
async function webhook(rest: Rest): Promise<JsonObject> {
  const { data } = (await rest("/v1/webhooks?active=true")).body;
  for (const { id } of data) await rest(`/v1/webhooks/${id}`, undefined, { method: "DELETE" });
  return aboutOne("/v1/webhooks", { url: "https://hooks.example.com/" })(rest);
}
/** Returns the ID of a delivery in `dlq`. */
async function givenUp(rest: Rest): Promise<string> {
  const { id: endpoint } = await webhook(rest);
  return giveUpDelivery(rest, String(endpoint));
}
const llmKey = { provider: "anthropic", api_key: "a-key-of-nobody" };
const quoted = { tier: "personal", crypto_currency: "btc" };
const quote = aboutOne("/v1/billing/crypto-checkout/quote", quoted);
const profile = aboutOne("/v1/profiles", { name: "walk" });
const recipe = aboutOne("/v1/recipes", smallRecipe);

/** Starts the enrolment of a second factor. Returns its authenticator. */
async function beginEnrolment({ rest, password }: Person) {
  return authenticatorOf((await rest("/v1/auth/mfa/totp", { password })).body.otpauth_url);
}
async function enrol(person: Person, { now }: WriteScene) {
  const codeAt = await beginEnrolment(person);
  await person.rest("/v1/auth/mfa/totp/confirm", { code: codeAt(now()) });
  return codeAt;
}

/** Requests a change to a new e-mail address, and returns the address. */
async function askForAddress({ rest, password }: Person): Promise<string> {
  const email = freshEmail();
  await rest("/v1/auth/email-change/request", { email, password });
  return email;
}

async function invite(rest: Rest, email: string): Promise<JsonObject> {
  const { id } = (await rest("/v1/team/invites", { email })).body;
  return { id };
}
async function membership(rest: Rest, scene: WriteScene): Promise<JsonObject> {
  const { userId } = await joinTeam(scene.url, scene.mailbox, rest);
  const { data } = (await rest("/v1/team/members")).body;
  return { id: data.find(({ user_id }: { user_id: string }) => user_id === userId).id };
}

/** Prepared calls of all audited methods. A new method needs an entry. */
export const writes: Readonly<Record<string, Prepare>> = {
  "AccountService.UpdateMe": byKey("account.update", async () => ({ account_name: "Engines" })),
  "AccountService.UpdateEmailPreferences": byMember("user.update_email_preferences", async () => ({
    product_updates: true,
  })),
  "AccountService.UpdateSettings": byKey("account.update_settings", async () => ({ logs: "errors" })),
  "ApiKeyService.Create": byKey("api_key.create", async () => ({ name: "walk" })),
  "ApiKeyService.Rotate": byKey("api_key.rotate", apiKey),
  "ApiKeyService.Revoke": byKey("api_key.revoke", apiKey),
  "AuthService.VerifyEmail": byNobody("account.create", async ({ url, mailbox }, email) => {
    await restClient({ url, key: "" })("/v1/auth/signup", { email, password: goodPassword });
    return { token: await tokenOfMail(mailbox, email) };
  }),
  "AuthService.LogIn": bySignedUp("login.create", async ({ email, password }) => ({ email, password })),
  "AuthService.ConsumeMagicLink": bySignedUp("login.create", async ({ email, rest }, { mailbox }) => {
    await rest("/v1/auth/magic-link/request", { email });
    return { token: await tokenOfMail(mailbox, email) };
  }),
  "AuthService.ConfirmPasswordReset": bySignedUp("user.reset_password", async ({ email, rest }, { mailbox }) => {
    await rest("/v1/auth/password-reset/request", { email });
    return { token: await tokenOfMail(mailbox, email), password: goodPassword };
  }),
  "AuthService.RevokeKeys": bySignedUp("api_key.revoke", async ({ email, rest }, { mailbox }) => {
    await rest("/v1/api-keys", { name: "walk" });
    await rest("/v1/auth/password-reset/request", { email });
    const token = await tokenOfMail(mailbox, email);
    await rest("/v1/auth/password-reset/confirm", { token, password: goodPassword });
    return { token: await tokenOfMail(mailbox, email) };
  }),
  "AuthService.LogOut": byMember("login.end", async () => ({})),
  "LoginService.End": byMember("login.end", async ({ rest, email, password, accountId: account_id }) => {
    await rest("/v1/auth/login", { email, password, account_id });
    const { data } = (await rest("/v1/account/logins")).body;
    return { id: data.find(({ current }: { current: boolean }) => !current).id };
  }),
  "MfaService.EnrolTotp": byMember("totp.begin", async ({ password }) => ({ password })),
  "MfaService.ConfirmTotp": byMember("totp.create", async (person, { now }) => ({
    code: (await beginEnrolment(person))(now()),
  })),
  "MfaService.StepUp": byMember("login.step_up", async (person, scene) => ({
    code: (await enrol(person, scene))(scene.now() + halfMinute),
  })),
  "MfaService.RemoveTotp": byMember("totp.delete", async (person, scene) => {
    await enrol(person, scene);
    return {};
  }),
  "CredentialsService.ChangePassword": byMember("user.change_password", async ({ password }) => ({
    current_password: password,
    password: anotherPassword,
  })),
  "CredentialsService.RequestEmailChange": byMember("user.request_email_change", async ({ password }) => ({
    email: freshEmail(),
    password,
  })),
  "CredentialsService.ConfirmEmailChange": byMember("user.change_email", async (person, { mailbox }) => ({
    token: await tokenOfMail(mailbox, await askForAddress(person)),
  })),
  "CredentialsService.UndoEmailChange": byMember("user.undo_email_change", async (person, { mailbox }) => {
    const token = await tokenOfMail(mailbox, await askForAddress(person));
    await person.rest("/v1/auth/email-change/confirm", { token });
    return { token: await tokenOfMail(mailbox, person.email) };
  }),
  "DeletionService.DeleteAccount": async (scene) => {
    const { email, password, accessToken: token, rest } = await signUp(scene.url, scene.mailbox);
    const log = async () => {
      await rest("/v1/auth/account/restore", { token: await tokenOfMail(scene.mailbox, email) });
      return rest;
    };
    return { request: { password }, token, action: "account.delete", log };
  },
  "DeletionService.RestoreAccount": async (scene) => {
    const { email, password, rest } = await signUp(scene.url, scene.mailbox);
    await rest("/v1/auth/account/delete", { password });
    const request = { token: await tokenOfMail(scene.mailbox, email) };
    return { request, action: "account.restore", log: async () => rest };
  },
  "LegalService.AcceptLegal": byKey("legal.accept", async (_, { publishTerms }) => ({
    revision_id: await publishTerms(),
  })),
  "OAuthService.Token": byKey("key_token.create", async (rest) => {
    const { id, key } = await made(rest, "/v1/api-keys", { name: "walk" });
    return { grant_type: "client_credentials", client_id: id ?? "", client_secret: key ?? "" };
  }),
  "TeamService.CreateInvite": byKey("team_invite.create", async () => ({ email: freshEmail() })),
  "TeamService.RevokeInvite": byKey("team_invite.revoke", (rest) => invite(rest, freshEmail())),
  "TeamService.AcceptInvite": async (scene) => {
    const { email, accessToken: token } = await signUp(scene.url, scene.mailbox);
    const rest = ownRest(scene);
    await invite(rest, email);
    const request = { token: await tokenOfMail(scene.mailbox, email) };
    return { request, token, action: "team_invite.accept", log: async () => rest };
  },
  "TeamService.UpdateMember": byKey("team_member.update", async (rest, scene) => ({
    ...(await membership(rest, scene)),
    role: "admin",
  })),
  "TeamService.RemoveMember": byKey("team_member.remove", membership),
  "TeamService.Leave": byMember("team_member.leave", async () => ({})),
  "SessionService.Create": byKey("session.create", async () => ({})),
  "SessionService.Update": byKey("session.update", async (rest) => ({
    ...(await session(rest)),
    labels: { env: "walk" },
  })),
  "SessionService.Destroy": byKey("session.destroy", session),
  "SessionService.CreateCdpUrl": byKey("cdp_url.create", session),
  "SessionService.DeleteCdpUrls": byKey("cdp_url.delete", async (rest) => {
    const { id = "" } = await session(rest);
    await rest(`/v1/sessions/${id}/cdp-url`, {});
    return { id };
  }),
  "AgentSessionService.Create": byKey("agent_session.create", async () => ({})),
  "AgentSessionService.SetMode": byKey("agent_session.set_mode", async (rest) => ({
    ...(await agentSession(rest)),
    mode: "agent",
  })),
  "AgentSessionService.TakeOver": byKey("agent_session.take_over", agentSession),
  "AgentSessionService.HandBack": byKey("agent_session.hand_back", async (rest) => {
    const { id = "" } = await agentSession(rest);
    await rest(`/v1/agent-sessions/${id}/takeover`, { client_id: "walker" });
    return { id, client_id: "walker" };
  }),
  "AgentSessionService.Destroy": byKey("agent_session.destroy", agentSession),
  "AgentViewService.GetGuiControlKey": byKey("agent_session.gui_control_key", agentSession),
  "LlmSettingsService.PutByokLlmKey": byKey("byok_llm_key.put", async () => llmKey),
  "LlmSettingsService.DeleteByokLlmKey": byKey("byok_llm_key.delete", async (rest) => {
    await rest("/v1/account/me/byok-llm-key", llmKey, { method: "PUT" });
    return {};
  }),
  "LlmSettingsService.UpdateBundledLlmSettings": byKey("bundled_llm_settings.update", async () => ({
    monthly_cap_cents: 1_000,
  })),
  "RecipeService.Create": byKey("recipe.create", async () => smallRecipe),
  "RecipeService.Delete": byKey("recipe.delete", recipe),
  "ProfileService.Create": byKey("profile.create", async () => ({ name: "walk" })),
  "ProfileService.Update": byKey("profile.update", async (rest) => ({ ...(await profile(rest)), description: "new" })),
  "ProfileService.Delete": byKey("profile.delete", profile),
  "ProfileService.GetStorageState": byKey("profile.export_storage_state", profile),
  "ProfileService.PutStorageState": byKey("profile.import_storage_state", async (rest) => ({
    ...(await profile(rest)),
    content: { contentType: "application/json", data: Buffer.from('{"cookies":[],"origins":[]}').toString("base64") },
  })),
  "BillingService.CreateCheckoutSession": byKey("subscription.checkout", async (rest) => {
    await unsubscribe(rest);
    return { tier: "personal" };
  }),
  "BillingService.CreatePortalSession": byKey("subscription.portal", async (rest) => {
    await subscribe(rest);
    return {};
  }),
  "CryptoOrderService.Quote": byKey("crypto_order.quote", async () => quoted),
  "CryptoOrderService.Checkout": byKey("crypto_order.checkout", async (rest) => {
    await unsubscribe(rest);
    await cancelOpenOrder(rest);
    return quoted;
  }),
  "CryptoOrderService.Update": byKey("crypto_order.update", async (rest) => ({ ...(await quote(rest)), note: "new" })),
  "CryptoOrderService.Cancel": byKey("crypto_order.cancel", quote),
  "WebhookService.Create": byKey("webhook.create", async (rest) => {
    await webhook(rest);
    return { url: "https://hooks.example.com/" };
  }),
  "WebhookService.Update": byKey("webhook.update", async (rest) => ({ ...(await webhook(rest)), description: "new" })),
  "WebhookService.Delete": byKey("webhook.delete", webhook),
  "WebhookService.RotateSecret": byKey("webhook.rotate_secret", webhook),
  "WebhookService.Test": byKey("webhook.test", webhook),
  "WebhookService.ReplayDelivery": byKey("webhook_delivery.replay", async (rest) => ({ id: await givenUp(rest) })),
  "WebhookService.ReplayFailedDeliveries": byKey("webhook.replay_failed", async (rest) => ({
    ...(await webhook(rest)),
    since: new Date(0).toISOString(),
  })),
  "FileService.Put": byKey("file.put", async (rest) => ({ ...(await session(rest)), name: "a.txt" })),
  "FileService.CreateLink": byKey("file_link.create", async (rest) => ({ ...(await session(rest)), name: "a.txt" })),
  "LiveService.Upload": byKey("file.put", async (rest) => ({ ...(await session(rest)), name: "a.txt" })),
  "ViewLinkService.Create": byKey("view_link.create", session),
  "ViewLinkService.Delete": byKey("view_link.delete", async (rest) => {
    const { id = "" } = await session(rest);
    return { id, link_id: (await rest(`/v1/sessions/${id}/view-links`, {})).body.id };
  }),
  "FileService.Delete": byKey("file.delete", async (rest) => ({ ...(await session(rest)), name: "a.txt" })),
};

/** Methods refused without a media server and an LLM, regardless of the caller. */
export const refusedEverywhere: readonly string[] = [
  "AgentTurnService.SendMessage",
  "AgentTurnService.CancelTurn",
  "AgentViewService.CreateMediaToken",
  "LlmSettingsService.TestByokLlmKey",
];

/** Methods without audit entries: page actions, requested or cancelled e-mails, and refreshed logins. */
export const unlogged: readonly string[] = [
  "SessionService.Navigate",
  "SessionService.Interact",
  "SessionService.Wait",
  "SessionService.Capture",
  "SessionService.Observe",
  "SessionService.Read",
  "SessionService.Fetch",
  "AgentInputService.SendInput",
  "AuthService.SignUp",
  "AuthService.RequestMagicLink",
  "AuthService.RequestPasswordReset",
  "AuthService.Refresh",
  "StatusService.Subscribe",
  "StatusService.UnsubscribeOneClick",
];
