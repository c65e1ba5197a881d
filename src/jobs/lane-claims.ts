import type { WorkKind } from "../kernel/work-kind.ts";
import { sleep } from "../platform/bounded-wait.ts";
import { IdleMap } from "../platform/idle-map.ts";
import { createRepeatedJob, type RepeatedJob } from "../platform/repeated-job.ts";
import type { HeldLanes } from "./held-lanes.ts";
import { type LaneRunParts, runLane } from "./lane-run.ts";
import { createPlaces } from "./places.ts";
import { type ClaimedLane, claimLanes, claimNamedLanes, failingFrom, releaseLane } from "./store.ts";

/** Milliseconds. The bus only wakes: whatever it loses, and what has become due, is found once a second. */
const pollEvery = 1_000;

/**
 * Lanes of a kind that a gateway runs at once. Those that take long or fail have places of their own, so that many of them
 * hold up no others; each costs some sockets.
 */
const allPlaces = { sound: 128, slow: 1_024, failing: 128 };

/**
 * How many of the sound places are only for owners that have none. The second lanes of owners begin in the few others, one
 * after the other as these move on: many that hang neither fill the places nor take this process's time from the rest.
 */
const reservedPlaces = 120;

/** How many lanes are claimed at once, of those that work and of those that fail: what comes meanwhile need not wait for all. */
const batch = 8;

/**
 * A look at a thousand lanes that are due takes PostgreSQL 7 ms, and each place that becomes free asks for one. Where places
 * are short, nobody looks again for so many times as long as a look took, and for so many milliseconds at most.
 */
const restAfterLook = { times: 9, most: 100 };

/** Milliseconds for which a lane that was quick is known for it. When it has news it is claimed by its name, beside all looks. */
const quickFor = 3_600_000;

/** What claims and runs the lanes of one kind of work. */
export interface LaneClaims extends Pick<RepeatedJob, "start"> {
  /** Says that a lane has news. */
  wake(lane: string): void;
  /** Claims nothing more. What runs goes on. */
  stop(): Promise<void>;
  /** Resolves when nothing runs. */
  ended(): Promise<unknown>;
}

/** Makes it. */
export function createLaneClaims(work: WorkKind<unknown>, held: HeldLanes, parts: LaneRunParts): LaneClaims {
  const { db, clock, log } = parts;
  const { kind } = work;
  const places = work.lanes === undefined ? allPlaces : { ...allPlaces, sound: work.lanes };
  const reserved = work.lanes === undefined ? reservedPlaces : 0;
  /** Whether lanes may wait for a place. */
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
      log.warn({ err: error, kind }, "a lane of work was not let go in order");
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

  /** Claims lanes that have news and were quick before, whatever else is due. */
  async function claimQuick(): Promise<void> {
    const limit = Math.min(batch, seats.free("sound"));
    if (preferred.size === 0 || limit <= 0) return;
    const askedAt = performance.now();
    const lanes = [...preferred].slice(0, limit);
    for (const lane of lanes) preferred.delete(lane);
    runAll(await claimNamedLanes(db, { ...terms(), lanes, limit }), askedAt);
    if (preferred.size > 0) void quickOnes.runNow();
  }

  /** Looks at all that is due. */
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

  const complaint = "work cannot be claimed";
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
