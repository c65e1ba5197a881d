import { expect } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { enrolFactor } from "../support/authenticator.ts";
import { type DeployedGateway, Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { LlmProvider } from "../support/llm-provider.ts";
import { type Mailbox, startMailbox } from "../support/mailbox.ts";
import { fromOwnNetwork, type Person, signUp } from "../support/people.ts";
import { type Answer, type Rest, restClient } from "../support/rest.ts";
import { type Endpoints, register, startEndpoints } from "../webhooks/scene.ts";

/** Servers outside the deployment, which the loss of its machine does not affect. */
export class Outside implements AsyncDisposable {
  readonly site = new FixtureSite();
  readonly provider = new LlmProvider();
  readonly mailbox: Mailbox;
  readonly receiver: Endpoints;

  private constructor(mailbox: Mailbox, receiver: Endpoints) {
    this.mailbox = mailbox;
    this.receiver = receiver;
  }

  static async start(): Promise<Outside> {
    const outside = new Outside(await startMailbox(), await startEndpoints(() => 503));
    await Promise.all([outside.site.start(), outside.provider.start()]);
    return outside;
  }

  /** Starts all processes of the service on a database. */
  deploy(databaseUrl: string, secretsKeys: string): Promise<Deployment> {
    return Deployment.start({
      databaseUrl,
      workers: 1,
      gateways: [{}],
      gatewayEnv: {
        ...this.provider.env,
        SECRETS_KEYS: secretsKeys,
        SIGNUP: "open",
        SMTP_URL: this.mailbox.url,
        MAIL_FROM: "Pilothouse <mail@example.com>",
        TRUSTED_PROXIES: "127.0.0.1",
        WEBHOOK_ALLOW: "127.0.0.1",
        QUEUE_MS: "60000",
      },
      // The machine may be busy with other tests.
      workerEnv: { EGRESS_ALLOW: this.site.host, CLOSE_AT_CPU: "100", WARM_BROWSERS: "0" },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site.stop();
    await this.provider[Symbol.asyncDispose]();
    await this.receiver[Symbol.asyncDispose]();
    await this.mailbox[Symbol.asyncDispose]();
  }
}

export async function succeed(answer: Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await answer;
  expect(status, JSON.stringify(body)).toBeLessThan(300);
  return body;
}

/** Waits for a condition, also in hooks. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  expect(await waitUntil(condition, { timeout: 60_000, every: 200 })).toBe(true);
}

const cookie = { name: "login", value: "kept", domain: "127.0.0.1", path: "/", expires: 2_000_000_000 };

/** Storage state of the profile. */
export const state = { cookies: [{ ...cookie, httpOnly: false, secure: false, sameSite: "Lax" }], origins: [] };

const recipe = {
  name: "Order",
  parameters: [{ name: "count", value: "2" }],
  steps: [{ do: { kind: "interact", action: { kind: "type", selector: "#count", text: "{{count}}" } } }],
};

const once = { headers: { "idempotency-key": "recipe-once" } };

/** Data of an account at the time of the backup. */
export interface Belongings {
  readonly key: string;
  readonly person: Person;
  readonly codeAt: (time: number) => string;
  readonly profile: string;
  readonly recipe: { readonly id: string };
  /** Webhook whose deliveries have failed so far. */
  readonly webhook: string;
  readonly undelivered: string;
  /** An ended session, and the session of the agent's running turn. */
  readonly ended: string;
  readonly running: string;
  readonly agent: string;
  readonly turn: string;
}

/** Creates one of each. When it returns, a model call of the agent is running. */
export async function acquire(outside: Outside, deployment: Deployment): Promise<Belongings> {
  const { rest, url } = deployment.gateway(0);
  const { mailbox, provider, receiver, site } = outside;
  const person = await signUp(url, mailbox);
  const { codeAt } = await enrolFactor(person);
  const { id: profile } = await succeed(rest("/v1/profiles", { name: "Shop" }));
  const put = { method: "PUT", body: JSON.stringify(state), headers: { "content-type": "application/json" } };
  await succeed(rest(`/v1/profiles/${profile}/storage-state`, undefined, put));
  const made = await succeed(rest("/v1/recipes", recipe, once));
  const llm = { provider: "anthropic", api_key: "good-key-x7Qa" };
  await succeed(rest("/v1/account/me/byok-llm-key", llm, { method: "PUT" }));
  const { id: ended } = await succeed(rest("/v1/sessions", {}));
  await succeed(rest(`/v1/sessions/${ended}/navigate`, { url: site.url("/plain.html") }));
  const webhook = await register(rest, receiver.url("/hooks"), { events: ["session.completed"] });
  await succeed(rest(`/v1/sessions/${ended}`, undefined, { method: "DELETE" }));
  const delivery = async () => (await rest(`/v1/webhooks/${webhook}/deliveries`)).body.data[0];
  await until(async () => (await delivery())?.status === "failed");
  await until(async () => (await rest(`/v1/sessions/${ended}/logs`)).body.data.length > 0);
  const { event_id: undelivered } = await delivery();

  const asked = Promise.withResolvers<void>();
  provider.script = ({ results }) => {
    if (results.length === 0) return { calls: [{ name: "navigate", input: { url: site.url("/plain.html") } }] };
    asked.resolve();
    return { silent: true };
  };
  const variables = { password: { value: "correct horse", domains: ["127.0.0.1"] } };
  const { id: agent, session_id: running } = await succeed(rest("/v1/agent-sessions", { variables }));
  const { turn_id: turn } = await succeed(rest(`/v1/agent-sessions/${agent}/message`, { text: "Order two." }));
  await asked.promise;
  return {
    ...{ key: deployment.key, person, codeAt, profile, recipe: made, webhook, undelivered },
    ...{ ended, running, agent, turn },
  };
}

/** Asks a restored service for everything that the account had, after what ran on the lost machine has ended. */
export async function askForAll({ url }: DeployedGateway, had: Belongings) {
  const rest = restClient({ url, key: had.key });
  const turn = () => rest(`/v1/agent-sessions/${had.agent}/turns/${had.turn}`);
  await until(async () => (await turn()).body.status === "failed");
  const { email, password } = had.person;
  const headers = fromOwnNetwork();
  const login = await restClient({ url, key: "" })("/v1/auth/login", { email, password }, { headers });
  const person = restClient({ url, key: login.body.access_token });
  // The code of the enrolment was used up.
  const code = had.codeAt(Date.now() + 30_000);
  return {
    account: await rest("/v1/account/me"),
    recipe: await rest(`/v1/recipes/${had.recipe.id}`),
    repeated: await rest("/v1/recipes", recipe, once),
    login,
    session: await rest(`/v1/sessions/${had.running}`),
    turn: await turn(),
    stepUp: await person("/v1/auth/mfa/step-up", { code }, { headers }),
    logs: await rest(`/v1/sessions/${had.ended}/logs`),
    state: await rest(`/v1/profiles/${had.profile}/storage-state`),
    llmKey: await rest("/v1/account/me/byok-llm-key/test", {}),
    launch: await rest("/v1/sessions", { profile_id: had.profile }),
  };
}

/** Returns the cookies of a page in a session. */
export async function cookiesIn({ site }: Outside, rest: Rest, session: string): Promise<string> {
  const script = encodeURIComponent("document.title = document.cookie || 'none'");
  await succeed(rest(`/v1/sessions/${session}/navigate`, { url: site.url(`/script.html#${script}`) }));
  const title = async () => (await rest(`/v1/sessions/${session}/state`)).body.title;
  await until(async () => !/^(Script)?$/.test(await title()));
  return title();
}
