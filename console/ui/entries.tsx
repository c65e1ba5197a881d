import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type ReactNode, type Ref, useRef } from "react";
import { Badge, type Tone } from "./badge.tsx";
import { ClockTime } from "./time.tsx";
import { useVirtualRows } from "./virtual.ts";

/** Something that happened, as a line of a record. */
export interface TimedEntry {
  readonly key: string;
  readonly at: Timestamp | undefined;
  readonly type: string;
  readonly tone: Tone;
  readonly text: ReactNode;
}

/** Height of an entry with one line, in pixels. */
const entryHeight = 39;

/** Entries by time. */
export function Entries({ label, entries }: { readonly label: string; readonly entries: readonly TimedEntry[] }) {
  const list = useRef<HTMLOListElement>(null);
  const { indexes, before, after, measure } = useVirtualRows(list, entries, ({ key }) => key, entryHeight);
  return (
    <ol ref={list} aria-label={label} className="text-sm" style={{ paddingTop: before, paddingBottom: after }}>
      {indexes.map((index) => {
        const entry = entries[index];
        return entry && <Entry key={entry.key} ref={measure} entry={entry} index={index} count={entries.length} />;
      })}
    </ol>
  );
}

interface EntryProps {
  readonly ref: Ref<HTMLLIElement> | undefined;
  readonly entry: TimedEntry;
  readonly index: number;
  readonly count: number;
}

function Entry({ ref, entry: { at, type, tone, text }, index, count }: EntryProps) {
  return (
    <li
      ref={ref}
      data-index={index}
      aria-posinset={index + 1}
      aria-setsize={count}
      className="grid grid-cols-[auto_1fr] items-baseline gap-x-4 gap-y-1 border-b border-line px-4 py-2 last:border-0 sm:grid-cols-[6rem_11rem_1fr]"
    >
      <span className="text-xs text-faint">
        <ClockTime at={at} />
      </span>
      <span className="min-w-0">
        <Badge tone={tone}>{type}</Badge>
      </span>
      <span className="col-span-2 min-w-0 font-mono text-xs break-words sm:col-span-1">{text}</span>
    </li>
  );
}
