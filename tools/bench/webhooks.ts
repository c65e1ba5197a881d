import pg from "pg";
import { Agent, request } from "undici";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { type Bench, boundVerdict, type Row } from "./bench.ts";
import { median, percentile } from "./samples.ts";
import { drain, startDrainSite } from "./webhook-drain.ts";
import type { WebhookAccount, WebhookSite } from "./webhook-site.ts";

const now = (): number => performance.timeOrigin + performance.now();
const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Concurrent requests of the bare loop. */
const bareWidth = 64;

/** Milliseconds that a delivery may start later than a bare POST. */
const extraMs = 10;

/** Costs and latency of deliveries, compared with a loop of POSTs to the same receiver. */
export const webhooks: Bench = {
  name: "webhooks",
  title: "deliveries to 100 endpoints against POSTs of undici to the same receiver; also with another transaction open",
  async run(scale): Promise<Row[]> {
    await using drained = await startDrainSite(1);
    const { site } = drained;
    const single = await site.account("single", ["/single"]);
    const [events, samples, heldMs] = [scale.of(60, 10), scale.of(200, 30), scale.of(30_000, 3_000)];
    await drain(drained, 10);
    const ours = await drain(drained, events);
    const bare = await postBare(site, ours.deliveries);
    const latency = await measureLatency(site, single, { samples, ms: 0 });
    const held = await whileHeld(site, () => measureLatency(site, single, { samples: 0, ms: heldMs }));
    const rate = (ms: number) => `${(1_000 / ms).toFixed(0)}/s`;
    return [
      { what: "deliveries a second", ours: rate(ours.eachMs), bare: rate(bare.eachMs), verdict: "" },
      {
        what: "CPU of the process, each",
        ours: `${ours.cpuMs.toFixed(2)} ms`,
        bare: `${bare.cpuMs.toFixed(2)} ms`,
        verdict: `and ${ours.postgresMs.toFixed(2)} ms of PostgreSQL`,
      },
      latencyRow("from the cause's beginning", latency.fromCause, latency.posts),
      latencyRow("from its answer", latency.fromAnswer, latency.posts),
      latencyRow(`the same, a transaction open for ${heldMs / 1_000} s`, held.fromAnswer, held.posts),
    ];
  },
};

const latencyRow = (what: string, ours: readonly number[], bare: readonly number[]): Row => ({
  what,
  ours: `${median(ours).toFixed(1)} ms (p99 ${percentile(ours, 0.99).toFixed(1)})`,
  bare: `${median(bare).toFixed(1)} ms (p99 ${percentile(bare, 0.99).toFixed(1)})`,
  verdict: boundVerdict(median(ours) - median(bare), extraMs, "ms more"),
});

const body = JSON.stringify({ id: "evt_0", type: "session.challenge_detected", data: { note: "x".repeat(150) } });

function post(agent: Agent, url: string, id: string): Promise<unknown> {
  const headers = { "content-type": "application/json", "webhook-id": id };
  return request(url, { method: "POST", dispatcher: agent, headers, body }).then((answer) => answer.body.dump());
}

async function postBare(site: WebhookSite, count: number): Promise<{ eachMs: number; cpuMs: number }> {
  const agent = new Agent({ connections: bareWidth });
  let next = 0;
  const [cpu, begun] = [process.cpuUsage(), now()];
  const loops = numbersTo(bareWidth).map(async () => {
    while (next < count) {
      next += 1;
      await post(agent, site.url("/bare"), `bare ${next}`);
    }
  });
  await Promise.all(loops);
  const [{ user, system }, eachMs] = [process.cpuUsage(cpu), (now() - begun) / count];
  await agent.close();
  return { eachMs, cpuMs: (user + system) / 1_000 / count };
}

/** Posts once. Returns the milliseconds until the arrival. */
async function postOnce(site: WebhookSite, agent: Agent, name: string): Promise<number> {
  const begun = now();
  await post(agent, site.url("/lone"), name);
  return (await arrivalOf(site, `/lone ${name}`)) - begun;
}

async function arrivalOf(site: WebhookSite, name: string): Promise<number> {
  await waitUntil(() => site.arrivals.has(name), { timeout: 30_000, every: 2 });
  return site.arrivals.get(name) ?? Number.NaN;
}

interface Latency {
  /** Milliseconds from the request that creates the event, an upper bound of the time from the commit. */
  readonly fromCause: number[];
  /** Milliseconds from the response to that request, a lower bound of the time from the commit. */
  readonly fromAnswer: number[];
  /** Milliseconds of bare POSTs, each sent just before a delivery. */
  readonly posts: number[];
}

/** Takes a minimum number of samples for a minimum time. */
async function measureLatency(
  site: WebhookSite,
  account: WebhookAccount,
  min: { readonly samples: number; readonly ms: number },
): Promise<Latency> {
  const agent = new Agent({ connections: 1 });
  const latency: Latency = { fromCause: [], fromAnswer: [], posts: [] };
  for (const end = now() + min.ms; latency.posts.length < min.samples || now() < end; ) {
    latency.posts.push(await postOnce(site, agent, `lone ${site.arrivals.size}`));
    const [known, begun] = [site.arrivals.size, now()];
    await account.cause(1);
    const answered = now();
    await site.until(known + 1);
    const at = Math.max(...[...site.arrivals.values()].slice(known));
    latency.fromCause.push(at - begun);
    latency.fromAnswer.push(at - answered);
  }
  await agent.close();
  return latency;
}

/** Measures while another database client holds an open transaction with writes. */
async function whileHeld<Figure>({ deployment }: WebhookSite, measure: () => Promise<Figure>): Promise<Figure> {
  const client = new pg.Client(deployment.postgres.url);
  await client.connect();
  try {
    await client.query("begin");
    await client.query("select pg_current_xact_id()");
    return await measure();
  } finally {
    await client.end();
  }
}
