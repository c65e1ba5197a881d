import { Gauge, type Registry } from "prom-client";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import { unlessLate } from "../platform/deadline.ts";
import type { Ids } from "../platform/ids.ts";
import type { Part } from "../platform/lifetime.ts";
import type { Log } from "../platform/log.ts";
import type { Database } from "../platform/postgres/database.ts";
import { createRepeatedJob } from "../platform/repeated-job.ts";
import { judge, type Sample } from "./board.ts";
import { healths } from "./components.ts";
import type { Feed } from "./feed.ts";
import { type Pace, type States, stepAll } from "./judgement.ts";
import { snapshotOf } from "./snapshot.ts";
import type { Sources } from "./sources.ts";
import { type BoardReading, forgetGateway, readBoard } from "./store.ts";

/** How long incidents that have ended are shown, in milliseconds. */
const shownFor = 90 * 86_400_000;

/** Samplings that wait for PostgreSQL: an hour of them. What is older is lost, and then nobody has sampled. */
const mostWaiting = 360;

export interface SamplerParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Registry;
  readonly sources: Sources;
  readonly feed: Feed;
  readonly pace: Pace;
  readonly countsAbsence: boolean;
}

/**
 * Looks at everything from time to time, and keeps what it sees. While PostgreSQL is away it judges for itself alone, and
 * writes later what it has seen: the others would find that nobody had sampled.
 */
export function createSampler(parts: SamplerParts): Part {
  const { db, bus, clock, ids, log, metrics, sources, feed, pace } = parts;
  const id = ids.next("gtw");
  const waiting: Sample[] = [];
  let writing: Promise<bigint | undefined> | undefined;
  let reading: BoardReading | undefined;
  let own: States | undefined;
  let isAway = false;
  /** The version that the bus has told of. */
  let told = 0n;
  new Gauge({
    name: "pilothouse_status",
    help: "How components are: 0 operational, 1 maintenance, 2 degraded, 3 partial and 4 major outage.",
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
      version = await db.transaction((tx) => judge(tx, id, sample, parts));
      while (waiting[0] && waiting[0].at <= at) waiting.shift();
    }
    return version;
  }

  /** Reads the board where it has changed: one statement a change, however many follow. */
  async function read(version?: bigint): Promise<boolean> {
    if (version !== undefined && reading && reading.version >= version) return false;
    reading = await readBoard(db, new Date(clock.now() - shownFor));
    return true;
  }

  /** Writes what waits, and reads what it has come to. One at a time; a server that hangs is not waited for. */
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
          log.debug({ err: error }, "the status cannot be written at the moment");
          return false;
        },
      );
    return unlessLate(settled, pace.probe, () => false);
  }

  async function sample(): Promise<void> {
    const at = clock.now();
    const facts = await sources.look(pace.probe);
    waiting.push({ at, facts });
    if (waiting.length > mostWaiting) waiting.shift();
    isAway = !(await settle());
    own = isAway ? stepAll(own ?? reading?.states ?? {}, [facts], 0, at, pace) : undefined;
    if (reading) feed.show(snapshotOf(reading, at, own));
  }

  /** Another gateway has seen a change, or the operator has said something. */
  async function reread(): Promise<void> {
    const version = told;
    if (!(await read(version))) return;
    if (reading && !isAway) feed.show(snapshotOf(reading, clock.now()));
  }

  const job = createRepeatedJob({ run: sample, every: pace.every, complaint: "the status cannot be sampled" }, parts);
  const hurried = createRepeatedJob(
    { run: reread, every: Number.POSITIVE_INFINITY, complaint: "the status cannot be read at the moment" },
    parts,
  );
  function hear(version: string): void {
    told = BigInt(version);
    void hurried.runNow();
  }
  let unsubscribe: (() => void) | undefined;
  return {
    async start() {
      await read();
      await sample();
      job.start();
      unsubscribe = bus.subscribe("status-changed", hear);
    },
    async stop() {
      unsubscribe?.();
      await Promise.all([job.stop(), hurried.stop()]);
      // Who stops in order is not missed.
      await unlessLate(
        forgetGateway(db, id).catch(() => undefined),
        pace.probe,
        () => undefined,
      );
    },
  };
}
