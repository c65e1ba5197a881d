import { fork } from "node:child_process";
import { once } from "node:events";
import { sleep, waitUntil } from "../../src/platform/bounded-wait.ts";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { changeIncident, insertIncident } from "../../src/status/incident-store.ts";
import { silentLog } from "../../test/support/database.ts";
import { Deployment } from "../../test/support/deployment.ts";
import { type Bench, boundVerdict, type Row } from "./bench.ts";
import { ownCpuMs, pssBytes } from "./processes.ts";
import type { FollowerNews, Reception } from "./status-client.ts";

const kibibyte = 1_024;
const barKib = 20;
const addresses = 200;

/** Milliseconds to wait for a status sample, and for the statistics of PostgreSQL to be up to date. */
const [receiveMs, countMs] = [60_000, 12_000];

const id = "inc_01jd2z5r1v7k9m3q8t4w6x0y2b";

/** Costs of status followers for a gateway, and whether all of them receive changes. */
export const statusFollowers: Bench = {
  name: "status-followers",
  title: `followers of the status over ${addresses} addresses: what each adds to the gateway's PSS, and what a change costs`,
  async run(scale): Promise<Row[]> {
    const [each, changes] = [scale.of(50, 5), scale.of(5, 2)];
    await using deployment = await Deployment.start({ workers: 0, gateways: [{ LOG_LEVEL: "warn" }] });
    await using db = disposable(openDatabase({ url: deployment.postgres.url }, silentLog));
    const { url, pid = 0 } = deployment.gateway(0);
    await deployment.fakeWorker();
    // The outage before the first worker must not count as a change.
    const isOperational = async () => (await (await fetch(`${url}/v1/status`)).json()).incidents.length === 0;
    if (!(await waitUntil(isOperational, { timeout: receiveMs, every: 200 })))
      throw new Error("expected the service to become operational");
    await declare(db, 0);
    // Grows the heap to the size that followers need, which stays after they leave.
    await (await openFollowers(url, 1)).leave();
    await sleep(countMs);
    const before = pssBytes(pid);
    const followers = await openFollowers(url, each);
    await sleep(countMs);
    const kibEach = (pssBytes(pid) - before) / kibibyte / followers.count;
    const [reads, idle] = [await countReads(db), ownCpuMs(pid)];
    await sleep(countMs);
    const idleCpu = ownCpuMs(pid) - idle;
    const spreads: number[] = [];
    const changing = ownCpuMs(pid);
    for (let change = 1; change <= changes; change += 1)
      spreads.push(await followers.receive(() => declare(db, change)));
    const cpu = ownCpuMs(pid) - changing;
    await sleep(countMs);
    const queries = ((await countReads(db)) - reads) / changes;
    await followers.leave();
    return [
      {
        what: "PSS of a follower",
        ours: `${kibEach.toFixed(1)} KiB`,
        bare: "",
        verdict: boundVerdict(kibEach, barKib, "KiB"),
      },
      {
        what: `${changes} changes`,
        ours: `${Math.max(...spreads).toFixed(0)} ms`,
        bare: "",
        verdict: `from the first to the last of ${followers.count} that hear it, at worst; ${(cpu / changes).toFixed(0)} ms of CPU a change`,
      },
      { what: "queries a change", ours: queries.toFixed(1), bare: "", verdict: boundVerdict(queries, 1, "queries") },
      { what: "12 s without a change", ours: `${idleCpu} ms`, bare: "", verdict: "of CPU (no bar)" },
    ];
  },
};

function disposable(db: Database): Database & AsyncDisposable {
  return Object.assign(db, { [Symbol.asyncDispose]: () => db.close() });
}

/** Adds an update to the incident, as an operator. */
async function declare(db: Database, change: number): Promise<void> {
  await db.transaction(async (tx) => {
    const now = new Date();
    if (change > 0) return changeIncident(tx, id, `It goes on (${change}).`, now);
    const components = ["webhooks"] as const;
    const words = { title: "Deliveries wait", health: "degraded", text: "We look into it." } as const;
    insertIncident(tx, { id, origin: "operator", components, from: now, ...words }, now);
  });
}

/** Counts reads of the status: each read queries the updates of the incident once. */
async function countReads(db: Database): Promise<number> {
  const named = {
    name: "",
    text: "select seq_scan + coalesce(idx_scan, 0) as scans from pg_stat_user_tables where relname = 'status_updates'",
  };
  const [row] = await db.named<{ scans: string }>(named, []);
  return Number(row?.scans);
}

/** Opens streams from each address. */
async function openFollowers(url: string, each: number) {
  const client = fork(new URL("status-client.ts", import.meta.url), [new URL(url).port, `${addresses}`, `${each}`]);
  const count = addresses * each;
  const ready = Promise.withResolvers<void>();
  let received: Reception[] = [];
  client.on("message", (news: FollowerNews) => {
    if ("lost" in news) ready.reject(new Error(news.lost));
    else if ("following" in news) ready.resolve();
    else received.push(...news.received);
  });
  await ready.promise;
  return {
    count,
    /** Returns the milliseconds between the first and the last follower that receives a change. */
    async receive(change: () => Promise<void>): Promise<number> {
      await sleep(200);
      received = [];
      await change();
      const sum = () => received.reduce((all, { followers }) => all + followers, 0);
      if (!(await waitUntil(() => sum() >= count, { timeout: receiveMs, every: 20 })))
        throw new Error(`${sum()} of ${count} have heard of a change`);
      return Math.max(...received.map(({ last }) => last)) - Math.min(...received.map(({ first }) => first));
    },
    async leave(): Promise<void> {
      const gone = once(client, "exit");
      client.disconnect();
      await gone;
    },
  };
}
