import { type ComponentName, type Health, worstOf } from "./components.ts";
import { percentOf, type Span, uptimeOf } from "./sla.ts";

/** Number of days shown on the status page. */
const shownDays = 90;

const dayMs = 86_400_000;

/** Health of a component on a UTC day. `health` is undefined without measurements. */
export interface Day {
  /** `YYYY-MM-DD`. */
  readonly date: string;
  readonly health: Health | undefined;
  readonly downSeconds: number;
}

/** Recent days of a component, oldest first, and its uptime. `percent` is undefined without measurements. */
export interface DayHistory {
  readonly days: readonly Day[];
  readonly percent: number | undefined;
}

/** Returns the start of the first day shown, in Unix milliseconds. */
export function firstShown(now: number): number {
  return Math.floor(now / dayMs) * dayMs - (shownDays - 1) * dayMs;
}

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
