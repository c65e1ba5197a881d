import { expect } from "vitest";
import type { OpenApiDocument } from "../../../gateway/openapi/model.ts";
import { authenticatorOf } from "../../support/authenticator.ts";
import { freshEmail, goodPassword, tokenOfMail } from "../../support/people.ts";
import type { PeopleGateway } from "../../support/people-gateway.ts";
import { restClient } from "../../support/rest.ts";
import { bringTermsIntoForce } from "../../support/terms.ts";
import { giveUpDelivery } from "../../webhooks/scene.ts";
import type { Answered } from "./described.ts";

/**
 * Operations that refuse every random request, since they need a password, a token of an e-mail, a code, an e-mail
 * address or a URL. Some need an endpoint that no random request has deactivated.
 */
export const doneByHand: readonly string[] = [
  "signUp",
  "verifyEmail",
  "logIn",
  "requestMagicLink",
  "consumeMagicLink",
  "requestPasswordReset",
  "confirmPasswordReset",
  "refreshAuth",
  "tokenOAuth",
  "enrolTotp",
  "confirmTotp",
  "stepUp",
  "changePassword",
  "revokeKeys",
  "requestEmailChange",
  "confirmEmailChange",
  "undoEmailChange",
  "deleteAccount",
  "restoreAccount",
  "createInvite",
  "acceptInvite",
  "updateMember",
  "leaveTeam",
  "getCurrentLegal",
  "acceptLegal",
  "createWebhook",
  "testWebhook",
  "replayWebhookDelivery",
  "replayWebhookFailedDeliveries",
  "subscribeStatus",
  "confirmStatusSubscription",
];

const halfMinute = 30_000;

/** Performs all these operations in a valid order, and returns their responses. */
export async function carryOutByHand(
  gateway: PeopleGateway,
  document: OpenApiDocument,
): Promise<ReadonlyMap<string, Answered>> {
  const { mailbox } = gateway;
  const answers = new Map<string, Answered>();
  const perform = performerOf(gateway.url, document, answers);
  const mailed = (email: string) => tokenOfMail(mailbox, email);
  const join = async (email: string): Promise<void> => {
    await perform("signUp", { email, password: goodPassword });
    await perform("verifyEmail", { token: await mailed(email) });
  };
  const logIn = async (email: string, accountId?: string): Promise<Record<string, string>> =>
    perform("logIn", { email, password: goodPassword, account_id: accountId });

  const [ada, grace] = [freshEmail(), freshEmail()];
  await join(ada);
  await perform("requestMagicLink", { email: ada });
  await perform("consumeMagicLink", { token: await mailed(ada) });
  await perform("requestPasswordReset", { email: ada });
  await perform("confirmPasswordReset", { token: await mailed(ada), password: goodPassword });
  const { refresh_token } = await perform("refreshAuth", { refresh_token: (await logIn(ada)).refresh_token });
  await perform("tokenOAuth", new URLSearchParams({ grant_type: "refresh_token", refresh_token }));

  const { access_token: owner } = await logIn(ada);
  const { otpauth_url } = await perform("enrolTotp", { password: goodPassword }, { bearer: owner });
  const codeAt = authenticatorOf(otpauth_url);
  await perform("confirmTotp", { code: codeAt(gateway.now()) }, { bearer: owner });
  await perform("stepUp", { code: codeAt(gateway.now() + halfMinute) }, { bearer: owner });

  const { id } = await perform("createWebhook", { url: "https://hooks.example.invalid/" }, { bearer: owner });
  await perform("testWebhook", {}, { bearer: owner, id });
  const delivery = await giveUpDelivery(restClient({ url: gateway.url, key: owner ?? "" }), id);
  await perform("replayWebhookDelivery", {}, { bearer: owner, id: delivery });
  await perform("replayWebhookFailedDeliveries", { since: new Date(0).toISOString() }, { bearer: owner, id });

  await join(grace);
  await perform("createInvite", { email: grace }, { bearer: owner });
  const invited = (await logIn(grace)).access_token;
  const member = await perform("acceptInvite", { token: await mailed(grace) }, { bearer: invited });
  await perform("updateMember", { role: "admin" }, { bearer: owner, id: member.id });
  await perform("leaveTeam", {}, { bearer: (await logIn(grace, member.account_id)).access_token });

  const [before, after] = [freshEmail(), freshEmail()];
  await join(before);
  const { access_token: bearer } = await logIn(before);
  await perform("createApiKey", { name: "by hand" }, { bearer });
  await perform("changePassword", { current_password: goodPassword, password: goodPassword }, { bearer });
  await perform("revokeKeys", { token: await mailed(before) });
  await perform("requestEmailChange", { email: after, password: goodPassword }, { bearer });
  await perform("confirmEmailChange", { token: await mailed(after) });
  await perform("undoEmailChange", { token: await mailed(before) });

  const left = freshEmail();
  await join(left);
  const { access_token: leaving } = await logIn(left);
  await perform("deleteAccount", { password: goodPassword }, { bearer: leaving });
  await perform("restoreAccount", { token: await mailed(left) });

  const reader = freshEmail();
  await perform("subscribeStatus", { email: reader });
  await perform("confirmStatusSubscription", undefined, { query: { token: await mailed(reader) } });

  await bringTermsIntoForce(gateway, { id: "second", url: "https://example.com/terms" });
  const { revision_id } = await perform("getCurrentLegal");
  await perform("acceptLegal", { revision_id }, { bearer: (await logIn(grace)).access_token });
  return answers;
}

/** Caller and target of an operation. */
interface Performance {
  readonly bearer?: string | undefined;
  readonly id?: string | undefined;
  readonly query?: Readonly<Record<string, string>>;
}

/** Returns a function that sends an operation's request, expects success, and stores the last response. */
function performerOf(url: string, document: OpenApiDocument, answers: Map<string, Answered>) {
  const routes = Object.entries(document.paths).flatMap(([template, item]) =>
    Object.entries(item).map(([verb, { operationId }]) => [operationId, { template, verb }] as const),
  );
  const routeOf = new Map(routes);
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  return async (operationId: string, body?: object, { bearer, id = "", query }: Performance = {}): Promise<any> => {
    const { template = "", verb = "" } = routeOf.get(operationId) ?? {};
    const isForm = body instanceof URLSearchParams;
    const asked = query ? `?${new URLSearchParams(query)}` : "";
    const response = await fetch(`${url}${template.replace("{id}", id)}${asked}`, {
      method: verb.toUpperCase(),
      headers: {
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
        ...(body && !isForm && { "content-type": "application/json" }),
      },
      ...(body && { body: isForm ? body : JSON.stringify(body) }),
    });
    const answer = { status: response.status, headers: response.headers, text: await response.text() };
    expect({ operationId, ok: response.ok, text: answer.text }).toMatchObject({ operationId, ok: true });
    if (doneByHand.includes(operationId)) answers.set(operationId, answer);
    return answer.text === "" ? {} : JSON.parse(answer.text);
  };
}
