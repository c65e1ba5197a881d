import { type ComponentName, componentNames, type Health, isDown } from "./components.ts";

/** For how long a component was how, in milliseconds since the Unix epoch. There are none of time in which it was not there. */
export interface Span {
  readonly component: ComponentName;
  readonly health: Health;
  readonly from: number;
  readonly to: number;
}

/** How much of some time something was up. */
export interface Uptime {
  /** Milliseconds that count: neither maintenance nor time in which it was not there. */
  readonly counted: number;
  readonly down: number;
}

/** A calendar month in UTC. */
export interface Month {
  /** `YYYY-MM`. */
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** So many calendar months, the one of a time among them, newest first. */
export function monthsUntil(now: number, count: number): Month[] {
  const year = new Date(now).getUTCFullYear();
  const month = new Date(now).getUTCMonth();
  return Array.from({ length: count }, (_, back) => {
    const from = Date.UTC(year, month - back);
    return { name: new Date(from).toISOString().slice(0, 7), from, to: Date.UTC(year, month - back + 1) };
  });
}

type Interval = readonly [from: number, to: number];

/** Milliseconds in at least one of some intervals. */
function lengthOf(intervals: readonly Interval[]): number {
  let length = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const [from, to] of intervals.toSorted(([one], [other]) => one - other)) {
    length += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return length;
}

/** How much of the time between two moments some components were all up; one that is down is enough. */
export function uptimeOf(spans: readonly Span[], names: readonly ComponentName[], from: number, to: number): Uptime {
  const cut = (those: readonly Span[]): Interval[] =>
    those.map((span): Interval => [Math.max(span.from, from), Math.min(span.to, to)]).filter(([a, b]) => a < b);
  const own = spans.filter(({ component, health }) => names.includes(component) && health !== "maintenance");
  return { counted: lengthOf(cut(own)), down: lengthOf(cut(own.filter(({ health }) => isDown(health)))) };
}

/** Up, in per cent: rounded down to three digits, so that no outage reads as none. */
export function percentOf({ counted, down }: Uptime): number {
  return counted === 0 ? 100 : Math.floor((100_000 * (counted - down)) / counted) / 1_000;
}

/** What stands for the service as a whole. */
const overall: readonly ComponentName[] = ["api", "sessions"];

/** One month of the report. */
export interface MonthReport extends Uptime {
  readonly name: string;
  readonly components: readonly (Uptime & { readonly name: ComponentName })[];
}

/** Reports months; those in which nothing was measured are left out. */
export function reportMonths(spans: readonly Span[], months: readonly Month[]): MonthReport[] {
  return months
    .map(({ name, from, to }) => ({
      name,
      ...uptimeOf(spans, overall, from, to),
      components: componentNames
        .filter((component) => spans.some((span) => span.component === component && span.from < to && span.to > from))
        .map((component) => ({ name: component, ...uptimeOf(spans, [component], from, to) })),
    }))
    .filter(({ components }) => components.length > 0);
}
