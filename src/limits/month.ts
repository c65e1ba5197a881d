/** Milliseconds. */
const aDay = 86_400_000;

/** A calendar month, UTC. */
export interface Month {
  /** Such as `2026-11`. */
  readonly name: string;
  /** Unix time in milliseconds. `endsAt` is exclusive. */
  readonly startsAt: number;
  readonly endsAt: number;
}

/** Returns the UTC day of a time, such as `2026-11-22`. */
export const dayAt = (time: number): string => new Date(time).toISOString().slice(0, 10);

export function monthAt(time: number): Month {
  const date = new Date(time);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { name: dayAt(time).slice(0, 7), startsAt: Date.UTC(year, month), endsAt: Date.UTC(year, month + 1) };
}

export const monthNamed = (name: string): Month => monthAt(Date.parse(`${name}-01T00:00:00Z`));

/** Splits a time span at every midnight, UTC. */
export function splitByDay(from: number, to: number): { readonly day: string; readonly ms: number }[] {
  const parts = [];
  for (let at = from; at < to; ) {
    const midnight = (Math.floor(at / aDay) + 1) * aDay;
    const end = Math.min(midnight, to);
    parts.push({ day: dayAt(at), ms: end - at });
    at = end;
  }
  return parts;
}
