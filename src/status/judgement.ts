import { type ComponentName, type Health, isWorse, worstOf } from "./components.ts";
import { type Outcomes, ownProbe, sumOf, witnesses } from "./tally.ts";

/** Facts that a gateway collected in one sample. */
export interface Facts {
  /** Components that the gateway measures. */
  readonly components: readonly ComponentName[];
  /** Problems found by probes. */
  readonly findings: readonly { readonly component: ComponentName; readonly health: Health }[];
  readonly outcomes: readonly ({ readonly component: ComponentName } & Outcomes)[];
}

/** Time constants in milliseconds. `every`: sampling interval. */
export interface Pace {
  readonly every: number;
  /** Timeout of a probe. */
  readonly probe: number;
  /**
   * Minimum duration of a fault before it is shown: less than a sampling interval, so the second sample with the fault
   * shows the fault.
   */
  readonly worseAfter: number;
  /**
   * Duration without a fault after which the fault's end is shown: less than two intervals, so the third sample without
   * the fault shows the end.
   */
  readonly betterAfter: number;
  /** Age of the last sample after which a gateway is silent. If all gateways are silent, the time counts as absence. */
  readonly silentAfter: number;
  /** Age of the last sample after which a gateway is considered removed. */
  readonly forgetAfter: number;
}

/** Milliseconds between samples. */
const usualEvery = 10_000;

export function paceOf(every = usualEvery): Pace {
  return {
    every,
    probe: 3_000,
    // Timers may fire some milliseconds late or a millisecond early.
    worseAfter: 0.9 * every,
    betterAfter: 1.9 * every,
    silentAfter: 30_000,
    forgetAfter: 300_000,
  };
}

/** Current health of a component, and a change that has not lasted long enough. */
export interface ComponentState {
  readonly health: Health;
  readonly pending?: { readonly health: Health; readonly since: number };
}

export type States = Readonly<Partial<Record<ComponentName, ComponentState>>>;

/** Minimum failure rates of health values. Rates below 2 % count as operational. */
const shares: readonly (readonly [min: number, health: Health])[] = [
  [0.5, "major_outage"],
  [0.1, "partial_outage"],
  [0.02, "degraded"],
];

function healthOf({ total, failed, seenBy }: Outcomes): Health {
  if (seenBy.length < witnesses && !seenBy.includes(ownProbe)) return "operational";
  return shares.find(([min]) => failed / total >= min)?.[1] ?? "operational";
}

/** Returns the momentary health of a component from the recent samples of all gateways. */
export function componentHealth(component: ComponentName, all: readonly Facts[], silentGateways: number): Health {
  const findings = all.flatMap(({ findings }) => findings.filter((each) => each.component === component));
  const outcomes = all.flatMap(({ outcomes }) => outcomes.filter((each) => each.component === component));
  // Some connections still reach a dead gateway until the load balancer removes it.
  const silence = component === "api" && silentGateways > 0 ? "degraded" : "operational";
  return worstOf([silence, healthOf(sumOf(outcomes)), ...findings.map(({ health }) => health)]);
}

/**
 * Applies a sample to a component's state. A change takes effect once it has lasted as long as `pace` requires. Of the
 * values sampled meanwhile, the value nearest to `before.health` applies.
 */
export function step(before: ComponentState | undefined, current: Health, at: number, pace: Pace): ComponentState {
  const { health, pending } = before ?? { health: "operational" };
  if (current === health) return { health };
  const gotWorse = isWorse(current, health);
  const isOngoing = pending !== undefined && isWorse(pending.health, health) === gotWorse;
  if (!isOngoing) return { health, pending: { health: current, since: at } };
  const nearer = isWorse(current, pending.health) === gotWorse ? pending.health : current;
  const hasLasted = at - pending.since >= (gotWorse ? pace.worseAfter : pace.betterAfter);
  return hasLasted ? { health: nearer } : { health, pending: { health: nearer, since: pending.since } };
}

/** Applies a sample to the states of all measured components. */
export function stepAll(before: States, all: readonly Facts[], silent: number, at: number, pace: Pace): States {
  const measured = new Set(all.flatMap(({ components }) => components));
  const entries = [...measured].map((name) => [name, step(before[name], componentHealth(name, all, silent), at, pace)]);
  return Object.fromEntries(entries);
}
