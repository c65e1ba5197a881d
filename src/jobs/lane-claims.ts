import type { WorkKind } from "../kernel/work-kind.ts";
import { sleep } from "../platform/bounded-wait.ts";
import { IdleMap } from "../platform/idle-map.ts";
import { createRepeatedJob, type RepeatedJob } from "../platform/repeated-job.ts";
import type { HeldLanes } from "./held-lanes.ts";
import { type LaneRunParts, runLane } from "./lane-run.ts";
import { createPlaces } from "./places.ts";
import { type ClaimedLane, claimLanes, claimNamedLanes, failingFrom, releaseLane } from "./store.ts";

/** Milliseconds. The bus is only a latency hint: polling finds lost messages and jobs that became due. */
const pollEvery = 1_000;

/**
 * Maximum number of queues of a kind that a gateway runs at once. Slow and failing queues have their own slots, so they
 * do not hold up healthy ones. Each slot costs some sockets.
 */
const allPlaces = { sound: 128, slow: 1_024, failing: 128 };

/**
 * Healthy slots reserved for owners without a running queue. Further queues of an owner share the remaining slots, so
 * hanging queues neither fill the slots nor starve this process.
 */
const reservedPlaces = 120;

/** Maximum number of queues per claim, for healthy and failing queues each. Small batches keep new jobs moving. */
const batch = 8;

/**
 * Claiming among 1,000 due queues takes PostgreSQL 7 ms, and each freed slot triggers a claim. While slots are short,
 * claiming pauses for `times` the duration of the last claim, at most `most` milliseconds.
 */
const restAfterLook = { times: 9, most: 100 };

/**
 * Milliseconds for which a queue counts as quick after a healthy run. New jobs of a quick queue are claimed by name,
 * independently of polling.
 */
const quickFor = 3_600_000;

/** Claims and runs the queues of one kind. */
export interface LaneClaims extends Pick<RepeatedJob, "start"> {
  /** Notifies of a new job in a queue. */
  wake(lane: string): void;
  /** Stops claiming. Running queues continue. */
  stop(): Promise<void>;
  /** Resolves when no queue is running. */
  ended(): Promise<unknown>;
}

/** Creates the claimer of a kind. */
export function createLaneClaims(work: WorkKind<unknown>, held: HeldLanes, parts: LaneRunParts): LaneClaims {
  const { db, clock, log } = parts;
  const { kind } = work;
  const places = work.lanes === undefined ? allPlaces : { ...allPlaces, sound: work.lanes };
  const reserved = work.lanes === undefined ? reservedPlaces : 0;
  /** Whether due queues may be waiting for a slot. */
  let isShort = false;
  const seats = createPlaces(places, () => {
    if (isShort) void looks.runNow();
    if (preferred.size > 0) void quickOnes.runNow();
  });
  const quick = new IdleMap<string, true>(quickFor);
  const preferred = new Set<string>();
  const running = new Set<Promise<void>>();

  async function run(claimed: ClaimedLane, askedAt: number): Promise<void> {
    const { lane, owner, failures } = claimed;
    const place = seats.take(failures < failingFrom ? "sound" : "failing", owner ?? lane);
    const mine = held.add(claimed, askedAt);
    try {
      await runLane({ held: mine, place, work }, parts);
      if (place.kind === "sound") quick.set(lane, true);
      else quick.delete(lane);
      const dueAt = await releaseLane(db, mine, new Date(clock.now()));
      if (dueAt !== null && dueAt.getTime() <= clock.now()) void looks.runNow();
    } catch (error) {
      log.warn({ err: error, kind }, "failed to run or release a job queue");
    } finally {
      held.remove(mine);
      place.leave();
    }
  }

  function runAll(lanes: readonly ClaimedLane[], askedAt: number): void {
    for (const lane of lanes) {
      const ran = run(lane, askedAt).finally(() => running.delete(ran));
      running.add(ran);
    }
  }

  const terms = () => ({ kind, now: new Date(clock.now()), gateway: held.gateway(), leaseMs: held.leaseMs });

  /** Claims quick queues with new jobs, ahead of other due queues. */
  async function claimQuick(): Promise<void> {
    const limit = Math.min(batch, seats.free("sound"));
    if (preferred.size === 0 || limit <= 0) return;
    const askedAt = performance.now();
    const lanes = [...preferred].slice(0, limit);
    for (const lane of lanes) preferred.delete(lane);
    runAll(await claimNamedLanes(db, { ...terms(), lanes, limit }), askedAt);
    if (preferred.size > 0) void quickOnes.runNow();
  }

  /** Claims from all due queues. */
  async function look(): Promise<void> {
    const askedAt = performance.now();
    const [sound, failing] = [seats.free("sound"), seats.free("failing")];
    const { lanes, waiting } = await claimLanes(db, {
      ...{ ...terms(), busy: seats.busy() },
      failing: Math.min(batch, failing),
      sound: Math.min(batch, sound),
      second: Math.min(batch, sound - reserved),
    });
    isShort = lanes.length < waiting || sound <= reserved || failing === 0;
    runAll(lanes, askedAt);
    if (lanes.length >= batch) void looks.runNow();
    else if (isShort) {
      const took = performance.now() - askedAt;
      await sleep(Math.min(restAfterLook.times * took, restAfterLook.most), parts.closing);
    }
  }

  const complaint = "failed to claim jobs";
  const quickOnes = createRepeatedJob({ run: claimQuick, every: pollEvery, complaint }, parts);
  const looks = createRepeatedJob({ run: look, every: pollEvery, complaint }, parts);
  return {
    start() {
      quickOnes.start();
      looks.start();
    },
    async stop() {
      await Promise.all([quickOnes.stop(), looks.stop()]);
    },
    ended: () => Promise.all(running),
    wake(lane) {
      if (!quick.get(lane)) return void looks.runNow();
      preferred.add(lane);
      void quickOnes.runNow();
    },
  };
}
