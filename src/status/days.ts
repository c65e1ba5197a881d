import { type ComponentName, type Health, worstOf } from "./components.ts";
import { percentOf, type Span, uptimeOf } from "./sla.ts";

/** Days that the page shows. */
const shownDays = 90;

const dayMs = 86_400_000;

/** A day of a component, in UTC; without health when nothing was measured. */
export interface Day {
  /** `YYYY-MM-DD`. */
  readonly date: string;
  readonly health: Health | undefined;
  readonly downSeconds: number;
}

/** The last days of a component, the oldest first, and how much of them it was up; undefined when nothing was measured. */
export interface DayHistory {
  readonly days: readonly Day[];
  readonly percent: number | undefined;
}

/** When the first of the days began that are shown at a time. */
export function firstShown(now: number): number {
  return Math.floor(now / dayMs) * dayMs - (shownDays - 1) * dayMs;
}

/** Makes the history of a component. */
export function historyOf(spans: readonly Span[], component: ComponentName, now: number): DayHistory {
  const own = spans.filter((span) => span.component === component);
  const begin = firstShown(now);
  const days = Array.from({ length: shownDays }, (_, index): Day => {
    const from = begin + index * dayMs;
    const within = own.filter((span) => span.from < from + dayMs && span.to > from);
    return {
      date: new Date(from).toISOString().slice(0, 10),
      health: within.length === 0 ? undefined : worstOf(within.map(({ health }) => health)),
      downSeconds: Math.round(uptimeOf(within, [component], from, from + dayMs).down / 1_000),
    };
  });
  const uptime = uptimeOf(own, [component], begin, now);
  return { days, percent: uptime.counted === 0 ? undefined : percentOf(uptime) };
}
