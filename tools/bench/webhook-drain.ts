import { ownCpuMs, treeCpuMs } from "./processes.ts";
import { startWebhookSite, type WebhookAccount, type WebhookSite } from "./webhook-site.ts";

const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** A site with ten accounts of ten endpoints. */
export interface DrainSite extends AsyncDisposable {
  readonly site: WebhookSite;
  readonly accounts: readonly WebhookAccount[];
}

/** Starts a site, with room for further accounts. */
export async function startDrainSite(room = 0): Promise<DrainSite> {
  const site = await startWebhookSite(10 + room);
  const accounts = numbersTo(10).map((account) =>
    site.account(
      `account ${account}`,
      numbersTo(10).map((index) => `/${account}/${index}`),
    ),
  );
  return { site, accounts: await Promise.all(accounts), [Symbol.asyncDispose]: () => site[Symbol.asyncDispose]() };
}

/** Costs per delivery. */
export interface Drained {
  readonly deliveries: number;
  readonly eachMs: number;
  /** CPU milliseconds of the gateway and of PostgreSQL. */
  readonly cpuMs: number;
  readonly postgresMs: number;
}

/** Queues events of each account while no gateway delivers, then starts a gateway that delivers all of them. */
export async function drain({ site, accounts }: DrainSite, events: number): Promise<Drained> {
  const { deployment, arrivals, until } = site;
  const gateway = deployment.gateway(1);
  const cpu = () => [ownCpuMs(gateway.pid ?? 0), treeCpuMs(deployment.postgres.pid)] as const;
  gateway.signal("SIGSTOP");
  await Promise.all(accounts.map((account) => account.cause(events)));
  const [before, [own, shared]] = [new Set(arrivals.keys()), cpu()];
  gateway.signal("SIGCONT");
  const deliveries = accounts.length * 10 * events;
  await until(before.size + deliveries);
  const [ownEnd, sharedEnd] = cpu();
  const times = [...arrivals].filter(([name]) => !before.has(name)).map(([, at]) => at);
  const eachMs = (Math.max(...times) - Math.min(...times)) / deliveries;
  return { deliveries, eachMs, cpuMs: (ownEnd - own) / deliveries, postgresMs: (sharedEnd - shared) / deliveries };
}
