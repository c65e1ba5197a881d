import { afterAll, beforeAll, expect, test } from "vitest";
import { Deployment } from "../support/deployment.ts";
import { type Mailbox, startMailbox } from "../support/mailbox.ts";
import { type Person, signUp, tokenOfMail } from "../support/people.ts";
import { type Rest, restClient } from "../support/rest.ts";

let mailbox: Mailbox;
let deployment: Deployment;
/** The two gateways' addresses. */
let urls: readonly [string, string];

beforeAll(async () => {
  mailbox = await startMailbox();
  deployment = await Deployment.start({
    workers: 0,
    gatewayEnv: {
      ...{ SMTP_URL: mailbox.url, MAIL_FROM: "Pilothouse <mail@example.com>", TRUSTED_PROXIES: "127.0.0.1" },
      SIGNUP: "open",
    },
  });
  urls = [deployment.gateway(0).url, deployment.gateway(1).url];
  await deployment.fakeWorker();
}, 120_000);
afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
  await mailbox?.[Symbol.asyncDispose]();
}, 60_000);

/** Signs somebody up whose account is of the highest tier. */
async function person(): Promise<Person> {
  const somebody = await signUp(urls[0], mailbox);
  await deployment.admin("set-tier", "--account", somebody.accountId, "--tier", "enterprise");
  return somebody;
}

async function invited(owner: Person, email: string): Promise<string> {
  expect((await owner.rest("/v1/team/invites", { email })).status).toBe(201);
  return tokenOfMail(mailbox, email);
}

test("of 500 who accept one invite at once over two gateways exactly one becomes a member by it", async () => {
  const [owner, grace] = [await person(), await person()];
  const token = await invited(owner, grace.email);
  const rests = urls.map((url): Rest => restClient({ url, key: grace.accessToken }));
  const answers = await Promise.all(
    Array.from({ length: 500 }, (_, index) => rests[index % 2]?.("/v1/team/invites/accept", { token })),
  );
  const outcomes = Object.groupBy(answers, (answer) => `${answer?.status} ${answer?.body.type?.split("/").at(-1)}`);
  const counts = Object.entries(outcomes).map(([outcome, all]) => [outcome, all?.length]);
  expect(Object.fromEntries(counts)).toEqual({ "200 undefined": 1, "401 invalid-auth-token": 499 });
  const { body } = await owner.rest("/v1/team/members");
  expect(body.data.map(({ email }: { email: string }) => email)).toEqual([grace.email, owner.email]);
}, 120_000);

test("a removed member's open stream ends on the other gateway within 5 s", async () => {
  const [owner, grace] = [await person(), await person()];
  const token = await invited(owner, grace.email);
  const { body: member } = await grace.rest("/v1/team/invites/accept", { token });
  const { email, password } = grace;
  const login = await grace.rest("/v1/auth/login", { email, password, account_id: owner.accountId });
  const { body: session } = await owner.rest("/v1/sessions", {});
  const headers = { authorization: `Bearer ${login.body.access_token}` };
  const stream = await fetch(`${urls[1]}/v1/sessions/${session.id}/events`, { headers });
  expect(stream.status).toBe(200);
  const removed = await owner.rest(`/v1/team/members/${member.id}`, undefined, { method: "DELETE" });
  const removedAt = performance.now();
  expect(removed.status).toBe(204);
  expect(await stream.text()).toContain("revoked-key");
  expect(performance.now() - removedAt).toBeLessThan(5_000);
  const refused = await restClient({ url: urls[1], key: login.body.access_token })("/v1/sessions");
  expect([refused.status, refused.body.type.split("/").at(-1)]).toEqual([401, "revoked-key"]);
}, 120_000);
