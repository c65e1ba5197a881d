import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ReactNode } from "react";
import { Badge, type Tone } from "./badge.tsx";
import { ClockTime } from "./time.tsx";

/** Something that happened, as a line of a record. */
export interface TimedEntry {
  readonly key: string;
  readonly at: Timestamp | undefined;
  readonly type: string;
  readonly tone: Tone;
  readonly text: ReactNode;
}

/** Entries by time. Browsers lay out only the visible ones. */
export function Entries({ label, entries }: { readonly label: string; readonly entries: readonly TimedEntry[] }) {
  return (
    <ol aria-label={label} className="text-sm">
      {entries.map(({ key, at, type, tone, text }) => (
        <li
          key={key}
          className="grid grid-cols-[auto_1fr] items-baseline gap-x-4 gap-y-1 border-b border-line px-4 py-2 [contain-intrinsic-size:auto_2.5rem] [content-visibility:auto] last:border-0 sm:grid-cols-[6rem_11rem_1fr]"
        >
          <span className="text-xs text-faint">
            <ClockTime at={at} />
          </span>
          <span className="min-w-0">
            <Badge tone={tone}>{type}</Badge>
          </span>
          <span className="col-span-2 min-w-0 font-mono text-xs break-words sm:col-span-1">{text}</span>
        </li>
      ))}
    </ol>
  );
}
