import { classes } from "./classes.ts";

interface MeterProps {
  readonly label: string;
  readonly used: number;
  /** Absent without a limit. */
  readonly limit: number | undefined;
  readonly format?: (value: number) => string;
  readonly note?: string;
}

/** Use of a limit as a bar. */
export function Meter({ label, used, limit, format = (value) => value.toLocaleString(), note }: MeterProps) {
  const share = limit === undefined || limit === 0 ? 0 : Math.min(1, used / limit);
  const tone = share >= 1 ? "bg-bad" : share >= 0.8 ? "bg-warn" : "bg-accent";
  return (
    <div>
      <div className="flex items-baseline justify-between gap-3 text-sm">
        <span className="font-medium">{label}</span>
        <span className="text-soft tabular-nums">
          {format(used)} {limit === undefined ? "· no limit" : `of ${format(limit)}`}
        </span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw a meter element each in their own way */}
      <div
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={limit ?? used}
        aria-valuenow={Math.min(used, limit ?? used)}
        className="mt-2 h-1.5 overflow-hidden rounded-full bg-hover"
      >
        <div className={classes("h-full rounded-full transition-[width]", tone)} style={{ width: `${share * 100}%` }} />
      </div>
      {note !== undefined && <p className="mt-1.5 text-xs text-faint">{note}</p>}
    </div>
  );
}
