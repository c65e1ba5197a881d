import { startService } from "../support/service.ts";
import { atLeastVerdict, type Bench, type Row, type Scale } from "./bench.ts";
import { browserPath } from "./browsers.ts";
import { Client } from "./client.ts";
import { treeCpuMs } from "./processes.ts";
import { openPage, RawBrowser } from "./raw-browser.ts";
import { interleave, type Measure, median, percentile } from "./samples.ts";
import { contextSession, processSession, type SessionRun, serviceSession } from "./session-run.ts";
import { startSite } from "./site.ts";

const bar = 1;

interface Sides {
  readonly ours: SessionRun;
  readonly process: SessionRun;
  readonly context: SessionRun;
}

/** Whole sessions against what a browser does by itself. */
export const endToEnd: Bench = {
  name: "end-to-end",
  title: "create + navigate + screenshot + destroy through REST, against raw CDP over a pipe",
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    const service = await startService({ EGRESS_ALLOW: site.host });
    const warm = new RawBrowser(browserPath("headless-shell"));
    try {
      using client = new Client(service);
      await openPage(warm);
      const sides: Sides = {
        ours: serviceSession(client, site.formUrl),
        process: processSession(site.formUrl),
        context: contextSession(warm, site.formUrl),
      };
      // Both sides compile what is hot in their first sessions.
      for (const run of Object.values(sides)) await runSessions(run, scale.of(20, 8), 1);
      return [
        ...(await compareRates(sides, 1, scale)),
        ...(await compareRates(sides, 4, scale)),
        ...(await compareCpu(sides, service.gateway.pid ?? 0, scale)),
      ];
    } finally {
      await warm.kill();
      await service.stop();
    }
  },
};

async function compareRates(sides: Sides, atOnce: number, scale: Scale): Promise<Row[]> {
  const times = { ours: [] as number[], process: [] as number[], context: [] as number[] };
  const block = (side: keyof Sides): Measure => {
    return async () => {
      const sessions = atOnce * scale.of(30, 4);
      const beganAt = performance.now();
      times[side].push(...(await runSessions(sides[side], sessions, atOnce)));
      return (sessions / (performance.now() - beganAt)) * 1_000;
    };
  };
  const rates = await interleave(
    { ours: block("ours"), process: block("process"), context: block("context") },
    { rounds: 1, warmUp: 0 },
  );
  const text = (side: keyof Sides): string => {
    const [p50, p95] = [median(times[side]), percentile(times[side], 0.95)];
    return `${median(rates[side]).toFixed(1)} sessions/s, ${p50.toFixed(0)} ms (p95 ${p95.toFixed(0)})`;
  };
  const rate = median(rates.ours);
  return [
    {
      what: `${atOnce} at a time, against a shell per session`,
      ours: text("ours"),
      bare: text("process"),
      verdict: atLeastVerdict(rate / median(rates.process), bar),
    },
    {
      what: `${atOnce} at a time, against contexts in one shell`,
      ours: text("ours"),
      bare: text("context"),
      verdict: `${(rate / median(rates.context)).toFixed(2)}x its sessions/s (no isolation there; no bar)`,
    },
  ];
}

/** Runs sessions, so many at once; gives the milliseconds of each. */
async function runSessions(run: SessionRun, count: number, atOnce: number): Promise<number[]> {
  const times: number[] = [];
  let left = count;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const beganAt = performance.now();
      const session = await run();
      await session.end();
      times.push(performance.now() - beganAt);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return times;
}

/** CPU of a session until just before its end, browser included: what dies in the end cannot be asked any more. */
async function compareCpu(sides: Sides, gateway: number, scale: Scale): Promise<Row[]> {
  const ourCpu = () => treeCpuMs(gateway);
  const bareCpu = () => treeCpuMs(process.pid) - treeCpuMs(gateway);
  const counted = (run: SessionRun, read: () => number): Measure => {
    return async () => {
      const before = read();
      const session = await run();
      const spent = read() - before;
      await session.end();
      return spent;
    };
  };
  const cpu = await interleave(
    {
      ours: counted(sides.ours, ourCpu),
      process: counted(sides.process, bareCpu),
      context: counted(sides.context, bareCpu),
    },
    { rounds: scale.of(12, 5), warmUp: 1 },
  );
  const [ours, process_, context] = [median(cpu.ours), median(cpu.process), median(cpu.context)];
  return [
    {
      what: "CPU of a session before its end",
      ours: `${ours} CPU-ms`,
      bare: `${process_} CPU-ms (context ${context})`,
      verdict: `${(ours / process_).toFixed(2)}x (no bar; the bare side has no sandbox, relay or namespace)`,
    },
  ];
}
