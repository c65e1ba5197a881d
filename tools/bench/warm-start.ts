import { setTimeout as delay } from "node:timers/promises";
import { type Browser, chromium } from "playwright";
import { startService } from "../../test/support/service.ts";
import { type Bench, type Row, ratioVerdict } from "./bench.ts";
import { browserPath, sandboxFlags } from "./browsers.ts";
import { Client } from "./client.ts";
import { openPage, RawBrowser } from "./raw-browser.ts";
import { interleave, type Measure, median, spread, timed } from "./samples.ts";
import { contextSession, type SessionRun, serviceSession } from "./session-run.ts";
import { startSite } from "./site.ts";

const createBar = 0.5;
const wholeBar = 1;

/** Milliseconds between sessions, in which the pool refills. */
const apartMs = 2_000;

/** Sessions with a warm browser, compared with contexts in a running browser. */
export const warmStart: Bench = {
  name: "warm-start",
  title: `sessions ${apartMs / 1_000} s apart with the pool full, against contexts in a warm headless shell`,
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    const service = await startService({ EGRESS_ALLOW: site.host });
    const raw = new RawBrowser();
    const playwright = await launchShell();
    try {
      using client = new Client(service);
      await openPage(raw);
      const rounds = { rounds: scale.of(10, 4), warmUp: scale.of(8, 4) };
      const create = await interleave({ ours: measureCreate(client), bare: measureContext(playwright) }, rounds);
      const whole = await interleave(
        {
          ours: measureWhole(serviceSession(client, site.formUrl)),
          bare: measureWhole(contextSession(raw, site.formUrl)),
        },
        rounds,
      );
      return [
        toRow("create, against newContext + newPage by Playwright", create, createBar),
        toRow("create + navigate + screenshot + destroy, against raw CDP in a context", whole, wholeBar),
      ];
    } finally {
      await playwright.close();
      await raw.kill();
      await service.stop();
    }
  },
};

function launchShell(): Promise<Browser> {
  return chromium.launch({ executablePath: browserPath("headless-shell"), args: [...sandboxFlags] });
}

function measureCreate(client: Client): Measure {
  return async () => {
    await delay(apartMs);
    let session = "";
    const spent = await timed(async () => {
      session = await client.create();
    })();
    await client.destroy(session);
    return spent;
  };
}

function measureContext(browser: Browser): Measure {
  return async () => {
    await delay(apartMs);
    const beganAt = performance.now();
    const context = await browser.newContext();
    await context.newPage();
    const spent = performance.now() - beganAt;
    await context.close();
    return spent;
  };
}

function measureWhole(run: SessionRun): Measure {
  return async () => {
    await delay(apartMs);
    return timed(async () => (await run()).end())();
  };
}

function toRow(what: string, { ours, bare }: Record<"ours" | "bare", number[]>, bar: number): Row {
  return { what, ours: spread(ours), bare: spread(bare), verdict: ratioVerdict(median(ours) / median(bare), bar) };
}
