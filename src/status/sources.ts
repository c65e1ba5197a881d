import { unlessLate } from "../platform/deadline.ts";
import { type ComponentName, componentNames, type Health } from "./components.ts";
import type { Facts } from "./judgement.ts";
import { createTally, type Tally } from "./tally.ts";

/** A dependency of a component that every gateway probes. */
export interface Source {
  readonly component: ComponentName;
  /**
   * Returns the component's health, or undefined if the dependency has not been used yet. A rejection, or no result
   * within the timeout, counts as failing. The signal aborts after the timeout.
   */
  check(signal: AbortSignal): Promise<Health | undefined>;
  /** Health if the probe fails. Default: major outage. */
  readonly failing?: Health;
}

/** Registry of probes and counters. Components without a probe or counter are not shown. */
export interface Sources {
  /** Adds a probe. Features call this when they are created. */
  watch(source: Source): void;
  /** Returns the counter of a component's successes and failures. */
  tally(component: ComponentName): Tally;
  /** Runs all probes with a timeout in milliseconds, and collects the counters. */
  check(limit: number): Promise<Facts>;
}

export function createSources(): Sources {
  const sources: Source[] = [];
  const tallies = new Map<ComponentName, Tally>();

  async function checkSource({ component, check, failing = "major_outage" }: Source, limit: number) {
    const over = new AbortController();
    const found = async () => check(over.signal);
    const health = await unlessLate(
      found().catch(() => failing),
      limit,
      () => failing,
    );
    over.abort();
    return { component, health };
  }

  return {
    watch: (source) => void sources.push(source),
    tally(component) {
      const tally = tallies.get(component) ?? createTally();
      tallies.set(component, tally);
      return tally;
    },
    async check(limit) {
      const findings = await Promise.all(sources.map((source) => checkSource(source, limit)));
      const outcomes = [...tallies].map(([component, tally]) => ({ component, ...tally.take() }));
      const measured = new Set([...findings, ...outcomes].map(({ component }) => component));
      for (const { component, health } of findings) if (health === undefined) measured.delete(component);
      return {
        components: componentNames.filter((name) => measured.has(name)),
        findings: findings.flatMap(({ component, health }) =>
          health === undefined || health === "operational" ? [] : [{ component, health }],
        ),
        outcomes: outcomes.filter(({ total }) => total > 0),
      };
    },
  };
}
