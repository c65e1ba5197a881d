import { setTimeout as sleep } from "node:timers/promises";
import { type Service, startService } from "../../test/support/service.ts";
import { type Bench, type Row, ratioVerdict } from "./bench.ts";
import { Client } from "./client.ts";
import { ownCpuMs, treeCpuMs } from "./processes.ts";
import { loadPage, openPage, RawBrowser } from "./raw-browser.ts";
import { median } from "./samples.ts";
import { type Site, startSite } from "./site.ts";

const bars = { browser: 1.1, all: 1.5 };

/** Milliseconds without requests after which a fetch reads its page. */
const idleMs = 500;

/** Concurrent fetches. */
const atOnce = 4;

/** CPU milliseconds of a round, per page. */
interface RoundTimes {
  readonly browser: number;
  readonly all: number;
  readonly milliseconds: number;
}

/** A side of the comparison. `read` returns the CPU milliseconds that it has used so far. */
interface Side {
  fetchOne(url: string): Promise<unknown>;
  read(): Pick<RoundTimes, "browser" | "all">;
}

/** CPU of fetches, against browser contexts driven by raw CDP in one browser. */
export const fetchCpu: Bench = {
  name: "fetch",
  title: `100 fetches, ${atOnce} at a time, against raw CDP contexts in one browser (context, page, load, ${idleMs} ms, outerHTML): CPU per page`,
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    const urls = pagesOf(site, scale.of(100, 20));
    const service = await startService({ EGRESS_ALLOW: site.host });
    try {
      using client = new Client(service);
      await using raw = await rawSide();
      const sides = [raw, serviceSide(service, client, "html"), serviceSide(service, client, "markdown")];
      const [bare, html, markdown] = await measure(scale.of(3, 1), urls, sides);
      return [...toRows("html", html, bare), ...toRows("markdown", markdown, bare)];
    } finally {
      await service.stop();
    }
  },
};

const pagesOf = (site: Site, count: number): string[] =>
  Array.from({ length: count }, (_, index) =>
    index % 2 === 0 ? `${site.formUrl}?${index}` : site.tableUrl(40 + index),
  );

/** Measures the sides in turn, so that a drift of the machine affects all alike. */
async function measure(rounds: number, urls: readonly string[], sides: readonly Side[]): Promise<RoundTimes[]> {
  // The service compiles hot code during its first dozens of fetches.
  for (const side of sides) for (let left = rounds; left > 0; left -= 1) await runRound(urls, side);
  const times = sides.map((): RoundTimes[] => []);
  for (let left = rounds; left > 0; left -= 1)
    for (const [index, side] of sides.entries()) times[index]?.push(await runRound(urls, side));
  return times.map((of) => {
    const middle = (name: keyof RoundTimes): number => median(of.map((each) => each[name]));
    return { browser: middle("browser"), all: middle("all"), milliseconds: middle("milliseconds") };
  });
}

/** Calls `fetchOne` for each page, `atOnce` at a time, and reads the CPU times before and after. */
async function runRound(urls: readonly string[], side: Side): Promise<RoundTimes> {
  const before = side.read();
  const beganAt = performance.now();
  const left = [...urls];
  const work = async (): Promise<void> => {
    for (let url = left.pop(); url !== undefined; url = left.pop()) await side.fetchOne(url);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const milliseconds = (performance.now() - beganAt) / urls.length;
  const after = side.read();
  return {
    browser: (after.browser - before.browser) / urls.length,
    all: (after.all - before.all) / urls.length,
    milliseconds,
  };
}

async function rawSide(): Promise<Side & AsyncDisposable> {
  const browser = new RawBrowser();
  const { pid = 0 } = browser.process;
  await browser.send("Browser.getVersion");
  return {
    async fetchOne(url) {
      const { browserContextId } = await browser.send("Target.createBrowserContext");
      const page = await openPage(browser, browserContextId);
      await loadPage(browser, page, url);
      await sleep(idleMs);
      const expression = "document.documentElement.outerHTML";
      await browser.send("Runtime.evaluate", { expression, returnByValue: true }, page.sessionId);
      await browser.send("Target.disposeBrowserContext", { browserContextId });
    },
    read: () => ({ browser: treeCpuMs(pid), all: treeCpuMs(pid) }),
    [Symbol.asyncDispose]: () => browser.kill(),
  };
}

function serviceSide(service: Service, client: Client, format: string): Side {
  const [supervisor, worker] = [service.pidOf("supervisor"), service.pidOf("worker")];
  return {
    fetchOne: (url) => client.post("/v1/fetch", { url, formats: [format] }),
    read: () => ({ browser: treeCpuMs(worker) - ownCpuMs(worker), all: wholeCpuMs(service, supervisor, worker) }),
  };
}

/** CPU of all processes, wherever PostgreSQL and the worker are in the process tree. */
function wholeCpuMs(service: Service, supervisor: number, worker: number): number {
  const others = (["control", "gateway"] as const).map(service.pidOf).filter((pid) => pid !== undefined);
  const own = [supervisor, ...others].reduce((sum, pid) => sum + ownCpuMs(pid), 0);
  return own + treeCpuMs(worker) + treeCpuMs(service.pidOf("postgres"));
}

function toRows(format: string, ours: RoundTimes | undefined, bare: RoundTimes | undefined): Row[] {
  if (!ours || !bare) return [];
  const row = (what: "browser" | "all", label: string): Row => ({
    what: `${format}: ${label}`,
    ours: `${ours[what].toFixed(1)} CPU-ms`,
    bare: `${bare[what].toFixed(1)} CPU-ms`,
    verdict: ratioVerdict(ours[what] / bare[what], bars[what]),
  });
  return [
    row("browser", "browser"),
    row("all", "all processes"),
    {
      what: `${format}: time`,
      ours: `${ours.milliseconds.toFixed(0)} ms`,
      bare: `${bare.milliseconds.toFixed(0)} ms`,
      verdict: "a page; both wait until the network is idle",
    },
  ];
}
