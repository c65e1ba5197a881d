import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { lowestId } from "../../src/platform/ids.ts";
import { type Query, withDatabase } from "../../test/e2e/support/embedded-database.ts";
import { type Service, startService } from "../../test/support/service.ts";
import { type Bench, boundVerdict, type Row } from "./bench.ts";
import { Client } from "./client.ts";
import { pssBytes } from "./processes.ts";
import { timed } from "./samples.ts";

const mebibyte = 1024 * 1024;
const barMib = 32;
const slowBytesPerSecond = mebibyte;
const path = "/v1/account/audit-log/export?format=jsonl";

/** Interval of the slow reader, and time for a gateway to free the memory of a fast reader, in milliseconds. */
const [stepMs, settleMs] = [50, 1_000];

/** Seconds of the fast warm-up read, which grows the heap to the size that exports need. */
const warmSeconds = 10;

/** Memory that a slow reader of a long audit log costs a gateway, and completeness of a fast export. */
export const auditExport: Bench = {
  name: "audit-export",
  title:
    "5 million entries of an audit log: what an export at 1 MiB/s adds to the gateway's PSS after 10 s at full speed, and the count",
  async run(scale): Promise<Row[]> {
    const service = await startService();
    try {
      using client = new Client(service);
      const entries = await seed(service, scale.of(5_000_000, 100_000));
      const slow = await readSlowly(client, service, scale.of(60, 10));
      return [slow, await readWhole(client, entries)];
    } finally {
      await service.stop();
    }
  },
};

/** Inserts entries of the developer's account by SQL. Returns the total number of entries. */
function seed({ databaseUrl }: Service, entries: number): Promise<number> {
  // The ids of all entries have the same millisecond; the digits after it define their order.
  const time = lowestId("aud", Date.now() - 86_400_000).slice(0, -16);
  return withDatabase(databaseUrl, async (query) => {
    const indexes = await query<{ indexdef: string; indexname: string }>(
      "select indexname, indexdef from pg_indexes where tablename = 'audit_entries' and indexname !~ 'pkey'",
    );
    for (const { indexname } of indexes) await query(`drop index ${indexname}`);
    await insertEntries(query, time, entries);
    for (const { indexdef } of indexes) await query(indexdef);
    await query("vacuum analyze audit_entries");
    const [row] = await query<{ all: string }>("select count(*) as all from audit_entries");
    return Number(row?.all);
  });
}

async function insertEntries(query: Query, time: string, entries: number): Promise<void> {
  await query(
    `insert into audit_entries
      (id, account_id, action, actor_kind, actor_id, actor_name, subject, data, request_id, client_address, user_agent)
      select $1 || lpad(i::text, 16, '0'), a.id, 'profile.update', 'key', 'key_01jd2z5r1v7k9m3q8t4w6x0y2b', 'Nightly checks',
        'prf_01jd2z5r1v7k9m3q8t4w6x0y2b', '{"changed": ["description"]}', 'req_' || i, '203.0.113.7', 'bench/1'
      from generate_series(1, $2::int) i, (select id from accounts order by created_at limit 1) a`,
    [time, entries],
  );
}

/** Reads slowly for some seconds. */
async function readSlowly(client: Client, service: Service, seconds: number): Promise<Row> {
  const gateway = service.pidOf("gateway");
  await drain(await client.open("GET", path), { seconds: warmSeconds, bytesPerSecond: Number.POSITIVE_INFINITY });
  await delay(settleMs);
  const before = pssBytes(gateway);
  let highest = before;
  const watch = setInterval(() => {
    highest = Math.max(highest, pssBytes(gateway));
  }, 1_000);
  const response = await client.open("GET", path);
  const { bytes } = await drain(response, { seconds, bytesPerSecond: slowBytesPerSecond }).finally(() =>
    clearInterval(watch),
  );
  const raised = (highest - before) / mebibyte;
  return {
    what: `${seconds} s at 1 MiB/s`,
    ours: `+${raised.toFixed(1)} MiB`,
    bare: "",
    verdict: `${boundVerdict(raised, barMib, "MiB")}; ${(bytes / mebibyte).toFixed(0)} MiB came`,
  };
}

async function readWhole(client: Client, entries: number): Promise<Row> {
  const response = await client.open("GET", path);
  let read = { bytes: 0, lines: 0 };
  const ms = await timed(async () => {
    read = await drain(response, { seconds: Number.POSITIVE_INFINITY, bytesPerSecond: Number.POSITIVE_INFINITY });
  })();
  const verdict = read.lines === entries ? `all ${entries} entries` : `${read.lines} of ${entries} entries  MISSED`;
  const mib = read.bytes / mebibyte;
  return {
    what: "at full speed",
    ours: `${(ms / 1_000).toFixed(0)} s`,
    bare: "",
    verdict: `${verdict}, ${mib.toFixed(0)} MiB, ${((mib / ms) * 1_000).toFixed(1)} MiB/s`,
  };
}

/** Reads a body at a limited rate for some time, then disconnects. */
async function drain(
  response: IncomingMessage,
  { seconds, bytesPerSecond }: { readonly seconds: number; readonly bytesPerSecond: number },
): Promise<{ bytes: number; lines: number }> {
  const ended = once(response, "close");
  const beganAt = performance.now();
  let [bytes, lines] = [0, 0];
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1;
    const elapsed = performance.now() - beganAt;
    if (elapsed > seconds * 1_000) response.destroy();
    const early = (bytes / bytesPerSecond) * 1_000 - elapsed;
    if (early < stepMs) return;
    response.pause();
    setTimeout(() => response.resume(), early);
  });
  await ended;
  return { bytes, lines };
}
