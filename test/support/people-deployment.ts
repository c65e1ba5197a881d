import { Deployment } from "./deployment.ts";
import type { FakeWorker } from "./fake-worker.ts";
import { type Mailbox, startMailbox } from "./mailbox.ts";
import { type Person, signUp } from "./people.ts";

/** Two gateways with sign-up, and a worker without browsers. */
export interface PeopleDeployment extends AsyncDisposable {
  readonly deployment: Deployment;
  readonly mailbox: Mailbox;
  readonly worker: FakeWorker;
  /** URLs of the gateways. */
  readonly urls: readonly [string, string];
  /** Signs up a user whose account has a tier. */
  person(tier?: string): Promise<Person>;
}

export async function startPeopleDeployment(): Promise<PeopleDeployment> {
  const mailbox = await startMailbox();
  const deployment = await Deployment.start({
    workers: 0,
    gatewayEnv: {
      SMTP_URL: mailbox.url,
      MAIL_FROM: "Pilothouse <mail@example.com>",
      TRUSTED_PROXIES: "127.0.0.1",
      SIGNUP: "open",
    },
  });
  const worker = await deployment.fakeWorker(0, { slots: 40 });
  const urls = [deployment.gateway(0).url, deployment.gateway(1).url] as const;
  return {
    deployment,
    mailbox,
    worker,
    urls,
    async person(tier) {
      const somebody = await signUp(urls[0], mailbox);
      if (tier !== undefined) await deployment.admin("set-tier", "--account", somebody.accountId, "--tier", tier);
      return somebody;
    },
    async [Symbol.asyncDispose]() {
      await deployment[Symbol.asyncDispose]();
      await mailbox[Symbol.asyncDispose]();
    },
  };
}
