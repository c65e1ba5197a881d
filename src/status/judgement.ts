import { type ComponentName, type Health, isWorse, worstOf } from "./components.ts";
import { type Outcomes, ownProbe, sumOf, witnesses } from "./tally.ts";

/** What a gateway has seen at one sampling. */
export interface Facts {
  /** The components that it measures. */
  readonly components: readonly ComponentName[];
  /** What its probes have found amiss. */
  readonly findings: readonly { readonly component: ComponentName; readonly health: Health }[];
  readonly outcomes: readonly ({ readonly component: ComponentName } & Outcomes)[];
}

/** Milliseconds. */
export interface Pace {
  readonly every: number;
  /** How long a probe may take. */
  readonly probe: number;
  /** A fault shows when it has lasted so long: at the second sampling that sees it. */
  readonly worseAfter: number;
  /** Its end shows when nothing was seen of it for so long. */
  readonly betterAfter: number;
  /** A gateway that has not sampled for so long is silent; nobody who has, an outage of all. */
  readonly silentAfter: number;
  /** A gateway that has been silent for so long is gone for good. */
  readonly forgetAfter: number;
}

/** Milliseconds between two samplings. */
const usualEvery = 10_000;

export function paceOf(every = usualEvery): Pace {
  return {
    every,
    probe: 3_000,
    // Timers are late by some milliseconds, and early by one.
    worseAfter: 0.9 * every,
    betterAfter: 1.9 * every,
    silentAfter: 30_000,
    forgetAfter: 300_000,
  };
}

/** What a component is taken for, and what it is about to be taken for instead. */
export interface ComponentState {
  readonly health: Health;
  readonly pending?: { readonly health: Health; readonly since: number };
}

/** The state of all components that are measured. */
export type States = Readonly<Partial<Record<ComponentName, ComponentState>>>;

/** From what share of failures. Below the least, what fails is one request among fifty. */
const shares: readonly (readonly [least: number, health: Health])[] = [
  [0.5, "major_outage"],
  [0.1, "partial_outage"],
  [0.02, "degraded"],
];

function healthOf({ total, failed, seenBy }: Outcomes): Health {
  if (seenBy.length < witnesses && !seenBy.includes(ownProbe)) return "operational";
  return shares.find(([least]) => failed / total >= least)?.[1] ?? "operational";
}

/** How a component looks right now, by what all gateways that have sampled lately have seen. */
export function lookOf(component: ComponentName, all: readonly Facts[], silentGateways: number): Health {
  const findings = all.flatMap(({ findings }) => findings.filter((each) => each.component === component));
  const outcomes = all.flatMap(({ outcomes }) => outcomes.filter((each) => each.component === component));
  // A gateway that has died is a part of the connections that fail until nobody is sent there any more.
  const silence = component === "api" && silentGateways > 0 ? "degraded" : "operational";
  return worstOf([silence, healthOf(sumOf(outcomes)), ...findings.map(({ health }) => health)]);
}

/**
 * What a component is taken for after one more look. A change shows when it has lasted: of what it was seen as meanwhile,
 * it becomes what is nearest to what it was.
 */
export function step(before: ComponentState | undefined, look: Health, at: number, pace: Pace): ComponentState {
  const { health, pending } = before ?? { health: "operational" };
  if (look === health) return { health };
  const gotWorse = isWorse(look, health);
  const goesOn = pending !== undefined && isWorse(pending.health, health) === gotWorse;
  if (!goesOn) return { health, pending: { health: look, since: at } };
  const nearer = isWorse(look, pending.health) === gotWorse ? pending.health : look;
  const hasLasted = at - pending.since >= (gotWorse ? pace.worseAfter : pace.betterAfter);
  return hasLasted ? { health: nearer } : { health, pending: { health: nearer, since: pending.since } };
}

/** The states of all components that anybody measures, after one more look. */
export function stepAll(before: States, all: readonly Facts[], silent: number, at: number, pace: Pace): States {
  const measured = new Set(all.flatMap(({ components }) => components));
  const entries = [...measured].map((name) => [name, step(before[name], lookOf(name, all, silent), at, pace)]);
  return Object.fromEntries(entries);
}
