import { Deployment, type DeploymentOptions } from "./deployment.ts";
import { type Mailbox, startMailbox } from "./mailbox.ts";
import { type Person, signUp } from "./people.ts";

/** Two gateways with sign-up, without workers. */
export interface PeopleDeployment extends AsyncDisposable {
  readonly deployment: Deployment;
  readonly mailbox: Mailbox;
  /** URLs of the gateways. */
  readonly urls: readonly [string, string];
  /** Signs up a user whose account has a tier. */
  person(tier?: string): Promise<Person>;
}

/** Starts two gateways. */
export async function startPeopleDeployment(
  options: Pick<DeploymentOptions, "gateways" | "gatewayEnv" | "redisUrl"> = {},
): Promise<PeopleDeployment> {
  const mailbox = await startMailbox();
  const deployment = await Deployment.start({
    ...options,
    workers: 0,
    gatewayEnv: {
      SMTP_URL: mailbox.url,
      MAIL_FROM: "Pilothouse <mail@example.com>",
      TRUSTED_PROXIES: "127.0.0.1",
      SIGNUP: "open",
      QUEUE_MS: "60000",
      ...options.gatewayEnv,
    },
  });
  const urls = [deployment.gateway(0).url, deployment.gateway(1).url] as const;
  return {
    deployment,
    mailbox,
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
