import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { FixtureSite } from "../../test/support/fixture-site.ts";
import { type DrivenSession, WorkerUnderTest } from "../../test/support/worker-under-test.ts";
import { type Bench, boundVerdict, type Row, ratioVerdict } from "./bench.ts";
import { median } from "./samples.ts";

/** Bars: ratio of the duration of other sessions' taps, delay of the worker's event loop, and growth of its RSS. */
const bars = { taps: 1.5, delayMs: 200, rssMiB: 256 };

/** Milliseconds between taps of a session: 15 sessions without pauses would need more than two cores. */
const pauseMs = 1_000;

/** Kinds of floods; `work` keeps a core busy and writes nothing. */
const kinds = ["work", "log", "throw", "reject", "request", "lines"] as const;

interface Seen {
  readonly taps: readonly number[];
  readonly delayMs: number;
  readonly rssMiB: number;
}

/** A page that floods its browser's pipe, next to other sessions on the same worker. */
export const flood: Bench = {
  name: "flood",
  title:
    "taps of others next to a page that writes 400 MiB in one message or 100,000 messages a second, compared with a busy one",
  async run(scale): Promise<Row[]> {
    const rows: Row[] = [];
    for (const runtime of ["headless-shell", "chromium"]) {
      rows.push(...(await measureRuntime(runtime, scale.of(15, 6), scale.of(15_000, 8_000))));
    }
    return rows;
  },
};

async function measureRuntime(runtime: string, others: number, ms: number): Promise<Row[]> {
  const site = await new FixtureSite().start();
  const worker = await WorkerUnderTest.start([site.host], { slots: others + kinds.length });
  const sessions: DrivenSession[] = [];
  try {
    for (let count = 0; count < others; count += 1) {
      const session = await worker.open({ runtime });
      await session.navigate({ url: site.url("/form.html") });
      sessions.push(session);
    }
    const rows: Row[] = [];
    let quiet: Seen | undefined;
    for (const kind of kinds) {
      const neighbour = await worker.open({ runtime });
      const over = new AbortController();
      const following = follow(neighbour, over.signal);
      await neighbour.navigate({ url: site.url("/flood.html?megabytes=400") });
      await tap(neighbour, `#${kind}`);
      const seen = await watch(sessions, ms);
      quiet ??= seen;
      rows.push(...rowsOf(`${runtime}, ${kind}`, seen, quiet));
      over.abort();
      await following;
      await neighbour.destroy();
    }
    if (worker.sessions.running.length !== others) throw new Error("expected all other sessions to survive");
    return rows;
  } finally {
    // An open session would keep this process alive until its time limit.
    await Promise.all(sessions.map((session) => session.destroy()));
    await worker.stop();
    await site.stop();
  }
}

/** Follows a session: a browser reports the output of pages only to followers. */
async function follow(session: DrivenSession, signal: AbortSignal): Promise<void> {
  try {
    for await (const event of session.watch(signal)) event.id;
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  }
}

async function tap(session: DrivenSession, selector: string): Promise<void> {
  await session.interact({ action: { case: "tap", value: { selector } }, timeoutMs: 30_000 });
}

/** Taps in all sessions for `ms` milliseconds, and measures this process, which runs the worker. */
async function watch(sessions: readonly DrivenSession[], ms: number): Promise<Seen> {
  const before = process.memoryUsage.rss();
  let max = before;
  const sampler = setInterval(() => {
    max = Math.max(max, process.memoryUsage.rss());
  }, 50);
  const loop = monitorEventLoopDelay({ resolution: 10 });
  loop.enable();
  const endsAt = performance.now() + ms;
  const taps: number[] = [];
  const drive = async (session: DrivenSession) => {
    while (performance.now() < endsAt) {
      const beganAt = performance.now();
      await tap(session, "button");
      taps.push(performance.now() - beganAt);
      await delay(pauseMs);
    }
  };
  await Promise.all(sessions.map(drive));
  clearInterval(sampler);
  loop.disable();
  return { taps, delayMs: loop.percentile(99) / 1e6, rssMiB: (max - before) / 2 ** 20 };
}

function rowsOf(name: string, seen: Seen, quiet: Seen): Row[] {
  const [ours, bare] = [median(seen.taps), median(quiet.taps)];
  const show = (ms: number) => `${ms.toFixed(0)} ms`;
  return [
    { what: `${name}: tap`, ours: show(ours), bare: show(bare), verdict: ratioVerdict(ours / bare, bars.taps) },
    {
      what: `${name}: loop p99`,
      ours: show(seen.delayMs),
      bare: show(quiet.delayMs),
      verdict: boundVerdict(seen.delayMs, bars.delayMs, "ms"),
    },
    {
      what: `${name}: RSS grows`,
      ours: `${seen.rssMiB.toFixed(0)} MiB`,
      bare: `${quiet.rssMiB.toFixed(0)} MiB`,
      verdict: boundVerdict(seen.rssMiB, bars.rssMiB, "MiB"),
    },
  ];
}
