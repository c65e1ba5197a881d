import { type CDPSession, chromium, type Page } from "playwright-core";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { type Service, startService } from "../support/service.ts";
import { type Bench, type Row, ratioVerdict, type Scale } from "./bench.ts";
import { browserPath, sandboxFlags } from "./browsers.ts";
import { Client } from "./client.ts";
import { treeCpuMs } from "./processes.ts";
import { interleave, type Measure, median, spread, timed } from "./samples.ts";
import { startSite } from "./site.ts";

const bar = 1.1;

/** What every operation is measured with. */
interface Stage {
  readonly service: Service;
  readonly client: Client;
  readonly formUrl: string;
  readonly scale: Scale;
}

/** One operation on both sides. */
interface Operation {
  readonly name: string;
  readonly ours: () => Promise<unknown>;
  readonly bare: () => Promise<unknown>;
}

/** Each operation of a session against the same Playwright call in this process. */
export const operations: Bench = {
  name: "operations",
  title: "operations through REST against the same Playwright calls in-process: same runtime, page and encoder",
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    const service = await startService({ EGRESS_ALLOW: site.host });
    try {
      using client = new Client(service);
      const stage = { service, client, formUrl: site.formUrl, scale };
      return [...(await measureRuntime("headless-shell", stage)), ...(await measureRuntime("chromium", stage))];
    } finally {
      await service.stop();
    }
  },
};

async function measureRuntime(runtime: BrowserRuntime, stage: Stage): Promise<Row[]> {
  const args = [...(runtime === "chromium" ? ["--headless=new"] : []), ...sandboxFlags];
  const browser = await chromium.launch({ executablePath: browserPath(runtime), args, chromiumSandbox: false });
  const session = await stage.client.create({ runtime });
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
    const cdp = await page.context().newCDPSession(page);
    const rows: Row[] = [];
    for (const operation of makeOperations(stage, session, page, cdp)) {
      rows.push(await measure(operation, runtime, stage));
    }
    return rows;
  } finally {
    await stage.client.destroy(session);
    await browser.close();
  }
}

function makeOperations({ client, formUrl }: Stage, session: string, page: Page, cdp: CDPSession): Operation[] {
  const capture = (kind: string) => () => client.post(`${session}/capture`, { kind });
  return [
    {
      name: "navigate",
      ours: () => client.post(`${session}/navigate`, { url: formUrl }),
      bare: () => page.goto(formUrl),
    },
    {
      name: "tap",
      ours: () => client.post(`${session}/interact`, { action: { kind: "tap", selector: "#go" } }),
      bare: () => page.locator("#go").click(),
    },
    {
      name: "wait",
      ours: () =>
        client.post(`${session}/wait`, { condition: { kind: "selector", selector: "#go", state: "visible" } }),
      bare: () => page.locator("#go").waitFor(),
    },
    {
      name: "screenshot",
      ours: capture("screenshot"),
      // Playwright's own call encodes otherwise: 36 % fewer bytes for 40 % more time.
      bare: () => cdp.send("Page.captureScreenshot", { format: "png", optimizeForSpeed: true }),
    },
    { name: "dom_snapshot", ours: capture("dom_snapshot"), bare: () => page.content() },
    { name: "pdf", ours: capture("pdf"), bare: () => page.pdf({ format: "A4" }) },
  ];
}

async function measure({ name, ours, bare }: Operation, runtime: string, { service, scale }: Stage): Promise<Row> {
  const cpu = { ours: 0, bare: 0 };
  const gateway = service.gateway.pid ?? 0;
  const ourCpu = () => treeCpuMs(gateway);
  // The service is a child of this process as the other browser is.
  const bareCpu = () => treeCpuMs(process.pid) - treeCpuMs(gateway);
  const counted =
    (side: "ours" | "bare", read: () => number, measure: Measure): Measure =>
    async () => {
      const before = read();
      const figure = await measure();
      cpu[side] += read() - before;
      return figure;
    };
  const sides = { ours: counted("ours", ourCpu, timed(ours)), bare: counted("bare", bareCpu, timed(bare)) };
  const rounds = scale.of(40, 10);
  const warmUp = 5;
  const times = await interleave(sides, { rounds, warmUp });
  const perOperation = (spent: number): string => `${(spent / (rounds + warmUp)).toFixed(0)} CPU-ms`;
  return {
    what: `${runtime} ${name}`,
    ours: `${spread(times.ours)}, ${perOperation(cpu.ours)}`,
    bare: `${spread(times.bare)}, ${perOperation(cpu.bare)}`,
    verdict: ratioVerdict(median(times.ours) / median(times.bare), bar),
  };
}
