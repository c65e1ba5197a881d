import { startService } from "../../test/support/service.ts";
import { atLeastVerdict, type Bench, type Row, type Scale } from "./bench.ts";
import { Client } from "./client.ts";
import { treeCpuMs } from "./processes.ts";
import { firstPage, RawBrowser } from "./raw-browser.ts";
import { interleave, type Measure, median, spread } from "./samples.ts";
import { contextSession, processSession, type SessionRun, serviceSession } from "./session-run.ts";
import { startSite } from "./site.ts";

const bar = 1;

/** Concurrent sessions. */
const atOnce = 4;

interface Sides {
  readonly ours: SessionRun;
  readonly process: SessionRun;
  readonly context: SessionRun;
}

/** Whole sessions of the service, compared with a bare browser. */
export const endToEnd: Bench = {
  name: "end-to-end",
  title: `create + navigate + screenshot + destroy, ${atOnce} at a time, through REST against raw CDP over a pipe with the same flags`,
  async run(scale): Promise<Row[]> {
    await using site = await startSite();
    const warm = new RawBrowser();
    await firstPage(warm);
    const bare = { process: processSession(site.formUrl), context: contextSession(warm, site.formUrl) };
    // Warms up the JIT of the bare side. The service is measured from its start, with an empty pool.
    for (const run of Object.values(bare)) await runSessions(run, scale.of(20, 8), 1);
    const service = await startService({ EGRESS_ALLOW: site.host });
    try {
      using client = new Client(service);
      const sides: Sides = { ours: serviceSession(client, site.formUrl), ...bare };
      return [...(await compareRates(sides, scale)), ...(await compareCpu(sides, service.supervisor.pid ?? 0, scale))];
    } finally {
      await warm.kill();
      await service.stop();
    }
  },
};

async function compareRates(sides: Sides, scale: Scale): Promise<Row[]> {
  const sessions = scale.of(120, 16);
  const ours = await rateOf(sides.ours, sessions);
  const process_ = await rateOf(sides.process, sessions);
  const context = await rateOf(sides.context, sessions);
  return [
    {
      what: `${sessions} sessions, first fill counted, against a shell per session`,
      ours: ours.text,
      bare: process_.text,
      verdict: atLeastVerdict(ours.rate / process_.rate, bar),
    },
    {
      what: "the same, against contexts in one shell",
      ours: ours.text,
      bare: context.text,
      verdict: `${(ours.rate / context.rate).toFixed(2)}x its sessions/s (no isolation there; no bar)`,
    },
  ];
}

async function rateOf(run: SessionRun, sessions: number): Promise<{ rate: number; text: string }> {
  const beganAt = performance.now();
  const times = await runSessions(run, sessions, atOnce);
  const rate = (sessions / (performance.now() - beganAt)) * 1_000;
  return { rate, text: `${rate.toFixed(1)} sessions/s, ${spread(times)}` };
}

/** Runs sessions with limited concurrency. Returns the milliseconds of each. */
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

/** Measures the CPU of a session, browser included, just before its end, since ended processes report nothing. */
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
