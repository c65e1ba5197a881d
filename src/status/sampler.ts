import { Gauge } from "prom-client";
import { unlessLate } from "../platform/deadline.ts";
import type { Part } from "../platform/lifetime.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { createRepeatedJob } from "../platform/repeated-job.ts";
import { judgeSample, type Sample } from "./board.ts";
import { healths } from "./components.ts";
import type { Feed } from "./feed.ts";
import { type Pace, type States, stepAll } from "./judgement.ts";
import { snapshotOf } from "./snapshot.ts";
import type { Sources } from "./sources.ts";
import { type BoardReading, forgetGateway, readBoard } from "./store.ts";

/** Milliseconds for which ended incidents are shown. */
const shownFor = 90 * 86_400_000;

/**
 * Maximum number of samples kept while PostgreSQL is down: one hour at the usual interval. Dropped samples count as
 * absence.
 */
const maxWaiting = 360;

export interface SamplerParts extends Pick<PlatformParts, "db" | "bus" | "clock" | "ids" | "log" | "metrics"> {
  readonly sources: Sources;
  readonly feed: Feed;
  readonly pace: Pace;
  readonly countsAbsence: boolean;
}

/**
 * Samples all sources periodically. While PostgreSQL is down, the gateway judges by its own samples and stores them
 * later. Without these samples, the time would count as absence.
 */
export function createSampler(parts: SamplerParts): Part {
  const { db, bus, clock, ids, log, metrics, sources, feed, pace } = parts;
  const id = ids.next("gtw");
  const waiting: Sample[] = [];
  let writing: Promise<bigint | undefined> | undefined;
  let reading: BoardReading | undefined;
  let own: States | undefined;
  let isDatabaseDown = false;
  /** Latest version announced on the bus. */
  let announced = 0n;
  new Gauge({
    name: "pilothouse_status",
    help: "Health of components: 0 operational, 1 maintenance, 2 degraded, 3 partial and 4 major outage.",
    labelNames: ["component"],
    registers: [metrics],
    collect() {
      this.reset();
      if (reading)
        for (const { component, health } of feed.now.components) this.set({ component }, healths.indexOf(health));
    },
  });

  async function write(): Promise<bigint | undefined> {
    let version: bigint | undefined;
    for (let [sample] = waiting; sample; [sample] = waiting) {
      const { at } = sample;
      version = await db.transaction((tx) => judgeSample(tx, id, sample, parts));
      while (waiting[0] && waiting[0].at <= at) waiting.shift();
    }
    return version;
  }

  /**
   * Reads the board, unless the version known to this gateway is at least `version`. Returns whether the board was
   * read.
   */
  async function read(version?: bigint): Promise<boolean> {
    if (version !== undefined && reading && reading.version >= version) return false;
    reading = await readBoard(db, new Date(clock.now() - shownFor));
    return true;
  }

  /**
   * Stores pending samples and reads the board. Concurrent calls share the write. Returns false on failure or after
   * `pace.probe`.
   */
  async function settle(): Promise<boolean> {
    writing ??= write().finally(() => {
      writing = undefined;
    });
    const settled = writing
      .then(async (version) => {
        if ((await read(version)) && reading) bus.publish("status-changed", `${reading.version}`);
      })
      .then(
        () => true,
        (error: unknown) => {
          log.debug({ err: error }, "failed to write the status");
          return false;
        },
      );
    return unlessLate(settled, pace.probe, () => false);
  }

  async function sample(): Promise<void> {
    const at = clock.now();
    const facts = await sources.check(pace.probe);
    waiting.push({ at, facts });
    if (waiting.length > maxWaiting) waiting.shift();
    isDatabaseDown = !(await settle());
    own = isDatabaseDown ? stepAll(own ?? reading?.states ?? {}, [facts], 0, at, pace) : undefined;
    if (reading) feed.show(snapshotOf(reading, at, own));
  }

  /** Reads the board after a change by another gateway or the operator. */
  async function reread(): Promise<void> {
    const version = announced;
    if (!(await read(version))) return;
    if (reading && !isDatabaseDown) feed.show(snapshotOf(reading, clock.now()));
  }

  const job = createRepeatedJob(
    { run: sample, every: pace.every, failureMessage: "failed to sample the status" },
    parts,
  );
  const rereading = createRepeatedJob(
    { run: reread, every: Number.POSITIVE_INFINITY, failureMessage: "failed to read the status" },
    parts,
  );
  function onVersion(version: string): void {
    announced = BigInt(version);
    void rereading.runNow();
  }
  let unsubscribe: (() => void) | undefined;
  return {
    async start() {
      await read();
      await sample();
      job.start();
      unsubscribe = bus.subscribe("status-changed", onVersion);
    },
    async stop() {
      unsubscribe?.();
      await Promise.all([job.stop(), rereading.stop()]);
      // A gateway that stops properly must not count as silent.
      await unlessLate(
        forgetGateway(db, id).catch(() => undefined),
        pace.probe,
        () => undefined,
      );
    },
  };
}
