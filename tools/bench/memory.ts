import { setTimeout as delay } from "node:timers/promises";
import { startService } from "../../test/support/service.ts";
import { type Bench, type Row, ratioVerdict } from "./bench.ts";
import { Client } from "./client.ts";
import { treePssBytes } from "./processes.ts";
import { firstPage, loadPage, RawBrowser } from "./raw-browser.ts";
import { startSite } from "./site.ts";

const bar = 1.1;

/** Milliseconds for a page's memory to settle after its load. */
const settleMs = 5_000;

/** Memory of one more session, compared with a bare browser with one page. */
export const memory: Bench = {
  name: "memory",
  title:
    "PSS of one more session (gateway, worker, PostgreSQL and browsers), against one more headless shell with one page",
  async run(scale): Promise<Row[]> {
    const more = scale.of(6, 3);
    await using site = await startSite();
    const ours = await measureService(site.host, site.formUrl, more);
    const bare = await measureShells(site.formUrl, more);
    return [
      {
        what: `one more of ${more + 1}`,
        ours: megabytes(ours),
        bare: megabytes(bare),
        verdict: ratioVerdict(ours / bare, bar),
      },
    ];
  },
};

/** Measures the service with one warm browser throughout, so that only the browsers of sessions count. */
async function measureService(host: string, url: string, more: number): Promise<number> {
  const service = await startService({ EGRESS_ALLOW: host, WARM_BROWSERS: "1" });
  try {
    using client = new Client(service);
    const begin = async () => client.post(`${await client.create()}/navigate`, { url });
    return await marginal(begin, () => treePssBytes(service.supervisor.pid ?? 0), more);
  } finally {
    await service.stop();
  }
}

async function measureShells(url: string, more: number): Promise<number> {
  const shells: RawBrowser[] = [];
  const begin = async () => {
    const shell = new RawBrowser();
    shells.push(shell);
    await loadPage(shell, await firstPage(shell), url);
  };
  const read = () => shells.reduce((sum, { process }) => sum + treePssBytes(process.pid ?? 0), 0);
  try {
    return await marginal(begin, read, more);
  } finally {
    await Promise.all(shells.map((shell) => shell.kill()));
  }
}

/** Starts one session, whose memory includes shared memory, then `more`. Returns the bytes that each of these adds. */
async function marginal(begin: () => Promise<unknown>, read: () => number, more: number): Promise<number> {
  await begin();
  await delay(settleMs);
  const before = read();
  for (let left = more; left > 0; left -= 1) await begin();
  await delay(settleMs);
  return (read() - before) / more;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
