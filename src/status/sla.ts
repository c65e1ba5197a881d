import { type ComponentName, componentNames, type Health, isDown } from "./components.ts";

/** Period of constant health of a component, in Unix milliseconds. Time without measurements has no span. */
export interface Span {
  readonly component: ComponentName;
  readonly health: Health;
  readonly from: number;
  readonly to: number;
}

export interface Uptime {
  /** Milliseconds measured, without maintenance. */
  readonly counted: number;
  readonly down: number;
}

/** A calendar month in UTC. `from` and `to` are in Unix milliseconds. */
export interface SlaMonth {
  /** `YYYY-MM`. */
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Returns the latest `count` calendar months including the current one, newest first. */
export function monthsUntil(now: number, count: number): SlaMonth[] {
  const year = new Date(now).getUTCFullYear();
  const month = new Date(now).getUTCMonth();
  return Array.from({ length: count }, (_, back) => {
    const from = Date.UTC(year, month - back);
    return { name: new Date(from).toISOString().slice(0, 7), from, to: Date.UTC(year, month - back + 1) };
  });
}

type Interval = readonly [from: number, to: number];

/** Returns the milliseconds covered by the union of the intervals. */
function lengthOf(intervals: readonly Interval[]): number {
  let length = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const [from, to] of intervals.toSorted(([one], [other]) => one - other)) {
    length += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return length;
}

/** Returns the uptime of a group of components between two times. The group is down if any component is. */
export function uptimeOf(spans: readonly Span[], names: readonly ComponentName[], from: number, to: number): Uptime {
  const cut = (those: readonly Span[]): Interval[] =>
    those.map((span): Interval => [Math.max(span.from, from), Math.min(span.to, to)]).filter(([a, b]) => a < b);
  const own = spans.filter(({ component, health }) => names.includes(component) && health !== "maintenance");
  return { counted: lengthOf(cut(own)), down: lengthOf(cut(own.filter(({ health }) => isDown(health)))) };
}

/**
 * Returns the uptime in percent, rounded down to three digits, so that no outage shows as 100. Returns 100 without
 * measurements.
 */
export function percentOf({ counted, down }: Uptime): number {
  return counted === 0 ? 100 : Math.floor((100_000 * (counted - down)) / counted) / 1_000;
}

/** Components that define the uptime of the service as a whole. */
const overall: readonly ComponentName[] = ["api", "sessions"];

export interface MonthReport extends Uptime {
  readonly name: string;
  readonly components: readonly (Uptime & { readonly name: ComponentName })[];
}

/** Reports the uptime of months. Omits months without measurements. */
export function reportMonths(spans: readonly Span[], months: readonly SlaMonth[]): MonthReport[] {
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
