import { unlessLate } from "../platform/deadline.ts";
import { type ComponentName, componentNames, type Health } from "./components.ts";
import type { Facts } from "./judgement.ts";
import { createTally, type Tally } from "./tally.ts";

/** Something that a component stands on, which every gateway looks at by itself. */
export interface Source {
  readonly component: ComponentName;
  /**
   * Looks. Gives how the component is by that, undefined while it has not begun; what throws, or takes longer than 3 s, is
   * failing. The signal aborts when nobody waits any more.
   */
  look(signal: AbortSignal): Promise<Health | undefined>;
  /** What the component is while it fails; a major outage unless it says. */
  readonly failing?: Health;
}

/** What is measured. A component that nothing is measured of is not shown. */
export interface Sources {
  /** Has something looked at from now on: features register what they need when they are made. */
  watch(source: Source): void;
  /** The tally of attempts at what a component does. */
  tally(component: ComponentName): Tally;
  /** Looks at everything, within so many milliseconds. */
  look(limit: number): Promise<Facts>;
}

/** Makes an empty collection. */
export function createSources(): Sources {
  const sources: Source[] = [];
  const tallies = new Map<ComponentName, Tally>();

  async function lookAt({ component, look, failing = "major_outage" }: Source, limit: number) {
    const over = new AbortController();
    const found = async () => look(over.signal);
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
    async look(limit) {
      const findings = await Promise.all(sources.map((source) => lookAt(source, limit)));
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
