import pg from "pg";
import { lowestId } from "../../src/platform/ids.ts";
import { type Bench, type Row, ratioVerdict } from "./bench.ts";
import { interleave, median, timed } from "./samples.ts";
import { type DrainSite, drain, startDrainSite } from "./webhook-drain.ts";
import type { WebhookSite } from "./webhook-site.ts";

const bar = 1.2;

/** Effect of old deliveries on new deliveries. */
export const webhooksOldLog: Bench = {
  name: "webhooks-old-log",
  title: "two services in turns, 100 endpoints each: one has 2 million old deliveries in its log, the other has none",
  async run(scale): Promise<Row[]> {
    const [old, events] = [scale.of(2_000_000, 100_000), scale.of(20, 5)];
    await using full = await startDrainSite();
    await using empty = await startDrainSite();
    await seed(full.site, old);
    const rates = await interleave(
      { full: async () => (await drain(full, events)).eachMs, empty: async () => (await drain(empty, events)).eachMs },
      { rounds: scale.of(5, 2), warmUp: 1 },
    );
    const reads = await interleave(
      { full: timed(() => readEndpoints(full)), empty: timed(() => readEndpoints(empty)) },
      { rounds: scale.of(300, 30), warmUp: 20 },
    );
    const rate = (ms: readonly number[]) => `${(1_000 / median(ms)).toFixed(0)}/s`;
    const [fullRead, emptyRead] = [median(reads.full), median(reads.empty)];
    return [
      {
        what: `deliveries a second, ${old} old ones`,
        ours: rate(rates.full),
        bare: rate(rates.empty),
        verdict: ratioVerdict(median(rates.full) / median(rates.empty), bar),
      },
      {
        what: "GET /v1/webhooks",
        ours: `${fullRead.toFixed(1)} ms`,
        bare: `${emptyRead.toFixed(1)} ms`,
        verdict: ratioVerdict(fullRead / emptyRead, bar),
      },
    ];
  },
};

async function readEndpoints({ accounts: [account] }: DrainSite): Promise<void> {
  const answer = await account?.rest("/v1/webhooks");
  if (answer?.status !== 200) throw new Error(`the endpoints cannot be listed: ${answer?.status}`);
}

/** Inserts old deliveries of all endpoints by SQL, since real deliveries would take too long. */
async function seed({ deployment }: WebhookSite, count: number): Promise<void> {
  // The ids of all deliveries have the same millisecond; the digits after it define their order.
  const time = lowestId("dlv", Date.now() - 86_400_000).slice(0, -16);
  const client = new pg.Client(deployment.postgres.url);
  await client.connect();
  try {
    await client.query(
      `insert into webhook_deliveries
          (id, endpoint_id, account_id, event_id, event_type, subject, status, attempts, created_at, delivered_at)
        select $1 || lpad(i::text, 16, '0'), e.id, e.account_id, 'evt_' || i, 'session.challenge_detected', 'ses_' || i % 1000,
          'delivered', '[{"number": 1, "started_at": "2026-01-01T00:00:00Z", "duration_ms": 12, "response_status": 200}]',
          now() - interval '1 day', now() - interval '1 day'
        from generate_series(1, $2::int) i
          join (select id, account_id, row_number() over (order by id) - 1 as place, count(*) over () as all from webhook_endpoints) e
            on e.place = i % e.all`,
      [time, count],
    );
    await client.query("vacuum analyze webhook_deliveries");
    await client.query("checkpoint");
  } finally {
    await client.end();
  }
}
