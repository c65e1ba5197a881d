import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** What the service counts; `/metrics` of the internal port shows it. */
export interface Metrics {
  readonly registry: Registry;
  /** Sessions that have ended, by `ended_reason`. */
  readonly sessionsEnded: Counter<"reason">;
  /** Seconds from a create's placement until its session was live. */
  readonly sessionLaunch: Histogram;
  /** Slots of live workers, by `state`: `held`, `free`, or `closed` where the worker takes no new sessions. */
  readonly slots: Gauge<"state">;
  /** Profiles of ended sessions, by `outcome`: `saved` or `failed`. */
  readonly profileSaves: Counter<"outcome">;
  /** Saves that wait because others are being taken. */
  readonly profileSavesWaiting: Gauge;
  /** Workers that missed their lease. */
  readonly workersLost: Counter;
}

/** Makes a registry of its own, so that several Apps in one process do not share counters. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    sessionsEnded: new Counter({
      name: "pilothouse_sessions_ended_total",
      help: "Sessions that have ended.",
      labelNames: ["reason"],
      registers,
    }),
    sessionLaunch: new Histogram({
      name: "pilothouse_session_launch_seconds",
      help: "Seconds from placement to live.",
      buckets: [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
      registers,
    }),
    slots: new Gauge({
      name: "pilothouse_slots",
      help: "Slots of live workers.",
      labelNames: ["state"],
      registers,
    }),
    profileSaves: new Counter({
      name: "pilothouse_profile_saves_total",
      help: "Profiles of ended sessions.",
      labelNames: ["outcome"],
      registers,
    }),
    profileSavesWaiting: new Gauge({
      name: "pilothouse_profile_saves_waiting",
      help: "Profiles that wait to be taken from their workers.",
      registers,
    }),
    workersLost: new Counter({
      name: "pilothouse_workers_lost_total",
      help: "Workers that missed their lease.",
      registers,
    }),
  };
}
