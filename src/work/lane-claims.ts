import { IdleMap } from "../platform/idle-map.ts";
import { createRepeatedJob, type RepeatedJob } from "../platform/repeated-job.ts";
import type { HeldLanes } from "./held-lanes.ts";
import { type LaneRunParts, runLane } from "./lane-run.ts";
import { createPlaces } from "./places.ts";
import { type ClaimedLane, claimLanes, failingFrom, releaseLane } from "./store.ts";
import type { WorkKind } from "./work-kind.ts";

/** Milliseconds. The bus only wakes: whatever it loses, and what has become due, is found once a second. */
const pollEvery = 1_000;

/**
 * Lanes of a kind that a gateway runs at once. Those that take long or fail have places of their own, so that many of them
 * hold up no others; each costs some sockets.
 */
const places = { sound: 128, slow: 1_024, failing: 128 };

/**
 * How many of the sound places are only for owners that have none. The second lanes of owners begin in the few others, one
 * after the other as these move on: many that hang neither fill the places nor take this process's time from the rest.
 */
const reserved = 120;

/** How many lanes are claimed at once, of those that work and of those that fail: what comes meanwhile need not wait for all. */
const batch = 8;

/** Milliseconds for which a lane that was quick is known for it. When it has news it is claimed before all others. */
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
  /** Whether lanes may wait for a place. */
  let isShort = false;
  const seats = createPlaces(places, () => isShort && job.hurry());
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
      if (dueAt !== null && dueAt.getTime() <= clock.now()) job.hurry();
    } catch (error) {
      log.warn({ err: error, kind }, "a lane of work was not let go in order");
    } finally {
      held.remove(mine);
      place.leave();
    }
  }

  async function claim(): Promise<void> {
    const askedAt = performance.now();
    const [sound, failing] = [seats.free("sound"), seats.free("failing")];
    const first = [...preferred].slice(0, batch);
    for (const lane of first) preferred.delete(lane);
    const { lanes, waiting } = await claimLanes(db, {
      ...{ kind, now: new Date(clock.now()), busy: seats.busy(), preferred: first, leaseMs: held.leaseMs },
      failing: Math.min(batch, failing),
      sound: Math.min(batch, sound),
      second: Math.min(batch, sound - reserved),
    });
    isShort = lanes.length < waiting || sound <= reserved || failing === 0;
    if (lanes.length >= batch || preferred.size > 0) job.hurry();
    for (const lane of lanes) {
      const ran = run(lane, askedAt).finally(() => running.delete(ran));
      running.add(ran);
    }
  }

  const job = createRepeatedJob({ run: claim, every: pollEvery, complaint: "work cannot be claimed" }, log);
  return {
    start: job.start,
    stop: job.stop,
    ended: () => Promise.all(running),
    wake(lane) {
      if (quick.get(lane)) preferred.add(lane);
      job.hurry();
    },
  };
}
