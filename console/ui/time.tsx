import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let now = Date.now();

/** Clock of all relative times on a page, updated every 15 s. */
const pageClock = {
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    if (listeners.size === 1) {
      timer = setInterval(() => {
        now = Date.now();
        for (const each of listeners) each();
      }, 15_000);
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) clearInterval(timer);
    };
  },
  read: (): number => Math.max(now, Date.now() - 15_000),
};

let timer: ReturnType<typeof setInterval> | undefined;

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });

const units = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
] as const;

function distance(ms: number): string {
  for (const [size, unit] of units) if (Math.abs(ms) >= size) return relative.format(Math.round(ms / size), unit);
  return ms > 0 ? "in a moment" : "just now";
}

interface AgoProps {
  readonly at: Timestamp | undefined;
  readonly none?: string;
}

/** A future time relative to now, with the full time as its title. Also shows that the time is over. */
export function Until({ at, none = "never" }: AgoProps) {
  const current = useSyncExternalStore(pageClock.subscribe, pageClock.read);
  return <Relative at={at} none={none} toDistance={(ms) => ms - current} />;
}

/**
 * A past time relative to now, with the full time as its title. The clock of the page may be behind that of the service,
 * so that a time appears to be in the future.
 */
export function Ago({ at, none = "never" }: AgoProps) {
  const current = useSyncExternalStore(pageClock.subscribe, pageClock.read);
  return <Relative at={at} none={none} toDistance={(ms) => Math.min(0, ms - current)} />;
}

function Relative({ at, none, toDistance }: Required<AgoProps> & { readonly toDistance: (ms: number) => number }) {
  if (!at) return <span className="text-faint">{none}</span>;
  const ms = timestampMs(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={full.format(ms)} className="whitespace-nowrap">
      {distance(toDistance(ms))}
    </time>
  );
}

/** A date. */
export function DateOf({ at, none = "-" }: AgoProps) {
  if (!at) return <span className="text-faint">{none}</span>;
  const ms = timestampMs(at);
  return <time dateTime={new Date(ms).toISOString()}>{day.format(ms)}</time>;
}

/** The time of day, with the full time as its title. */
export function ClockTime({ at }: Pick<AgoProps, "at">) {
  if (!at) return null;
  const ms = timestampMs(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={full.format(ms)} className="whitespace-nowrap tabular-nums">
      {clock.format(ms)}
    </time>
  );
}

/** Returns a duration such as `1 h 5 min`. */
export function durationText(seconds: number): string {
  const [hours, mins] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60)];
  if (hours > 0) return mins > 0 ? `${hours} h ${mins} min` : `${hours} h`;
  return mins > 0 ? `${mins} min` : `${Math.round(seconds)} s`;
}
