import { systemClock } from "../../src/platform/clock.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";

/** Milliseconds per unit of relative times. */
const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a future time: ISO 8601, or a duration from now. */
export function readTime(option: string, text: string | undefined): Date {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text ?? "") ?? [];
  const isIso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/.test(text ?? "");
  const now = systemClock.now();
  const at = unit === undefined ? Date.parse(isIso ? (text ?? "") : "") : now + Number(count) * (units[unit] ?? 0);
  if (at > now) return new Date(at);
  throw new StartRefused(
    `--${option} accepts a future time, such as 2030-01-31T12:00:00Z, or 90m, 12h, 7d from now, not ${text ?? "nothing"}`,
  );
}
