import { chromium, type Page } from "playwright";
import { pageScript } from "../../src/gen/injected/page-script.ts";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { type Service, startService } from "../../test/support/service.ts";
import { type Bench, boundVerdict, type Row, ratioVerdict, type Scale } from "./bench.ts";
import { browserPath, sandboxFlags } from "./browsers.ts";
import { Client } from "./client.ts";
import { treeCpuMs } from "./processes.ts";
import { firstPage, loadPage, RawBrowser, type RawPage, shootPage } from "./raw-browser.ts";
import { interleave, type Measure, median, spread, timed } from "./samples.ts";
import { startSite } from "./site.ts";

/** Allowed overhead of an operation: a factor, or milliseconds. */
type Bar = { readonly times: number } | { readonly addedMs: number };

/** Bar for finding, checking and aiming at an element, for which Playwright waits two frames. */
const element: Bar = { times: 0.35 };
/** Bar for operations that the browser performs on both sides. */
const browserWork: Bar = { addedMs: 5 };
/** Bar for operations that are slow on both sides. */
const slowWork: Bar = { times: 1.15 };

const viewport = { width: 1280, height: 720 };

const typedText = "twenty characters it";

/** Shared parts of the operations. */
interface Stage {
  readonly service: Service;
  readonly client: Client;
  readonly formUrl: string;
  readonly scale: Scale;
}

/** One operation on both sides. */
interface Operation {
  readonly name: string;
  readonly bar: Bar;
  readonly ours: () => Promise<unknown>;
  readonly bare: () => Promise<unknown>;
}

/** Each operation of a session, compared with the same operation in this process. */
export const operations: Bench = {
  name: "operations",
  title:
    "operations through REST against the same work in-process, by Playwright or CDP: same runtime, page and encoder",
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
  const raw = new RawBrowser(runtime);
  const session = await stage.client.create({ runtime });
  try {
    const page = await browser.newPage({ viewport });
    const rawPage = await firstPage(raw);
    const screen = { ...viewport, deviceScaleFactor: 1, mobile: false };
    await raw.send("Emulation.setDeviceMetricsOverride", screen, rawPage.sessionId);
    await loadPage(raw, rawPage, stage.formUrl);
    const rows: Row[] = [];
    for (const operation of [...byPlaywright(stage, session, page), ...byCdp(stage, session, raw, rawPage)]) {
      rows.push(await measure(operation, runtime, stage));
    }
    return rows;
  } finally {
    await stage.client.destroy(session);
    await raw.kill();
    await browser.close();
  }
}

/** Returns operations for which clients use Playwright. */
function byPlaywright({ client, formUrl }: Stage, session: string, page: Page): Operation[] {
  const interact = (action: object) => () => client.post(`${session}/interact`, { action });
  return [
    {
      name: "navigate",
      bar: { times: 1 },
      ours: () => client.post(`${session}/navigate`, { url: formUrl }),
      bare: () => page.goto(formUrl),
    },
    ...makeInteractions(interact, page),
  ];
}

/** Returns operations that the worker performs by CDP. */
function byCdp({ client }: Stage, session: string, raw: RawBrowser, page: RawPage): Operation[] {
  const capture = (kind: string) => () => client.post(`${session}/capture`, { kind });
  const send = (method: string, params: object = {}) => raw.send(method, params, page.sessionId);
  const evaluate = async (expression: string) => {
    const world = { frameId: page.targetId, worldName: "bench" };
    const { executionContextId: contextId } = await send("Page.createIsolatedWorld", world);
    return send("Runtime.evaluate", { expression, contextId, returnByValue: true });
  };
  const condition = { kind: "selector", selector: "#go", state: "visible" };
  return [
    {
      name: "wait",
      bar: browserWork,
      ours: () => client.post(`${session}/wait`, { condition }),
      bare: () => evaluate("document.querySelector('#go').checkVisibility()"),
    },
    { name: "screenshot", bar: browserWork, ours: capture("screenshot"), bare: () => shootPage(raw, page) },
    {
      name: "dom_snapshot",
      bar: browserWork,
      ours: capture("dom_snapshot"),
      bare: () => evaluate(`${pageScript}.readDocument({ token: "frame-", limit: 1e8 }, { from: 0, size: 1e8 }).html`),
    },
    {
      name: "state",
      bar: browserWork,
      ours: () => client.get(`${session}/state`),
      bare: () =>
        Promise.all([raw.send("Target.getTargetInfo", { targetId: page.targetId }), send("Page.getLayoutMetrics")]),
    },
    {
      name: "pdf",
      bar: slowWork,
      ours: capture("pdf"),
      bare: () => send("Page.printToPDF", { paperWidth: 8.27, paperHeight: 11.7, generateTaggedPDF: false }),
    },
  ];
}

function makeInteractions(interact: (action: object) => () => Promise<unknown>, page: Page): Operation[] {
  const selector = "[name=field1]";
  const field = page.locator(selector);
  const typing = { kind: "type", selector, text: typedText, clear: true };
  const from = { selector: "#go" };
  return [
    {
      name: "tap",
      bar: element,
      ours: interact({ kind: "tap", selector: "#go" }),
      bare: () => page.locator("#go").click(),
    },
    {
      name: "hover",
      bar: element,
      ours: interact({ kind: "hover", selector: "#go" }),
      bare: () => page.locator("#go").hover(),
    },
    {
      name: `type ${typedText.length} characters`,
      bar: element,
      ours: interact(typing),
      bare: async () => {
        await field.clear();
        await field.pressSequentially(typedText);
      },
    },
    {
      name: "insert them",
      bar: browserWork,
      ours: interact({ ...typing, insert: true }),
      bare: () => field.fill(typedText),
    },
    {
      name: "key",
      bar: browserWork,
      ours: interact({ kind: "key", key: "ArrowLeft" }),
      bare: () => page.keyboard.press("ArrowLeft"),
    },
    {
      name: "select",
      bar: element,
      ours: interact({ kind: "select", selector: "#size", values: ["large"] }),
      bare: () => page.locator("#size").selectOption("large"),
    },
    {
      name: "drag in 10 moves",
      bar: slowWork,
      ours: interact({ kind: "drag", from, to: { selector } }),
      bare: () => page.locator(from.selector).dragTo(field, { steps: 10 }),
    },
  ];
}

async function measure({ name, bar, ours, bare }: Operation, runtime: string, { service, scale }: Stage): Promise<Row> {
  const cpu = { ours: 0, bare: 0 };
  const tree = service.supervisor.pid ?? 0;
  const ourCpu = () => treeCpuMs(tree);
  // The service is a child of this process, as the bare browser is.
  const bareCpu = () => treeCpuMs(process.pid) - treeCpuMs(tree);
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
    verdict: verdictOf(bar, median(times.ours), median(times.bare)),
  };
}

function verdictOf(bar: Bar, ours: number, bare: number): string {
  return "times" in bar ? ratioVerdict(ours / bare, bar.times) : boundVerdict(ours - bare, bar.addedMs, "ms more");
}
