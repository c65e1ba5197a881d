import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { LegalService } from "../../src/gen/pilothouse/v1/legal_pb.ts";
import { ProfileService } from "../../src/gen/pilothouse/v1/profile_pb.ts";
import { sampledTransports } from "../support/long-test.ts";
import { freshEmail, type Person, tokenOfMail } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import type { TransportName } from "../support/transport-calls.ts";

const { getCurrentLegal, acceptLegal } = LegalService.method;
const { signUp, verifyEmail, logIn } = AuthService.method;
const url = "https://example.com/terms";
const day = 86_400_000;

let gateway: PeopleGateway;
let ada: Person;
beforeAll(async () => {
  gateway = await startPeopleGateway();
  ada = await gateway.signUp();
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

/** Publishes terms as the operator, effective in a number of days. */
const publish = (revision: string, days: number): Promise<string> => {
  const effective = new Date(gateway.now() + days * day).toISOString();
  return gateway.admin("publish-terms", "--revision", revision, "--url", url, "--effective", effective);
};

test("there are no terms until the operator publishes some, 14 days ahead", async () => {
  expect((await gateway.call("REST", getCurrentLegal, {})).slug).toBe("not-found");
  await expect(publish("too-soon", 13)).rejects.toThrow("at least 14 days after publication");
});

const revisionOf = (transport: TransportName): string => transport.replaceAll(" ", "-");

test("owners receive an e-mail about each revision", async () => {
  for (const [index, transport] of sampledTransports.entries())
    await publish(revisionOf(transport), 14.01 * (index + 1));
  gateway.pass(5_000);
  for (const _transport of sampledTransports)
    expect((await gateway.mailbox.next(ada.email)).subject).toBe("Our terms are changing");
});

// Each revision takes effect as the test's clock advances.
describe.each(sampledTransports)("over %s", (transport) => {
  test("a revision must be accepted from its effective date", async () => {
    const id = revisionOf(transport);
    const list = (token: string) => gateway.call(transport, ProfileService.method.list, {}, { token });
    const early = await gateway.signUp();
    expect((await list(early.accessToken)).extensions).not.toMatchObject({ revision_id: id });
    gateway.pass(14.02 * day);
    expect((await gateway.call(transport, getCurrentLegal, {})).answer).toMatchObject({ revision_id: id, url });
    const late = await gateway.signUp();
    const shown = { token: late.accessToken };
    const required = { slug: "legal-acceptance-required", extensions: { revision_id: id, url } };
    const refused = await list(late.accessToken);
    expect(refused).toMatchObject(required);
    expect(refused.answer.detail ?? refused.answer.rawMessage).toContain(`post {"revision_id":"${id}"} to /v1/legal/`);
    expect((await gateway.call(transport, acceptLegal, { revision_id: "another" }, shown)).slug).toBe("conflict");
    const accepted = await gateway.call(transport, acceptLegal, { revision_id: id }, shown);
    expect(accepted.answer).toMatchObject({ revision_id: id });
    expect((await gateway.call(transport, acceptLegal, { revision_id: id }, shown)).answer).toEqual(accepted.answer);
    expect((await list(late.accessToken)).slug).toBe("");
    const accepting = await gateway.signUp({ acceptedRevisionId: id });
    expect((await list(accepting.accessToken)).slug).toBe("");
    const { data } = (await accepting.rest("/v1/account/audit-log?action=legal.accept")).body;
    expect(data).toMatchObject([{ subject_id: id, actor: { id: accepting.userId } }]);
    const another = { email: freshEmail(), password: accepting.password, accepted_revision_id: "another" };
    expect((await gateway.call(transport, signUp, another)).slug).toBe("conflict");
    // A user who confirms a repeated sign-up may not have accepted the terms.
    const doubtful = { ...another, accepted_revision_id: id };
    expect((await gateway.call(transport, signUp, doubtful)).slug).toBe("");
    await tokenOfMail(gateway.mailbox, doubtful.email);
    expect((await gateway.call(transport, signUp, doubtful)).slug).toBe("email-already-registered");
    const verified = { token: await tokenOfMail(gateway.mailbox, doubtful.email), password: doubtful.password };
    expect((await gateway.call(transport, verifyEmail, verified)).slug).toBe("");
    const { answer: login } = await gateway.call(transport, logIn, {
      email: doubtful.email,
      password: doubtful.password,
    });
    expect((await list(login.access_token)).slug).toBe("legal-acceptance-required");
  });
});
