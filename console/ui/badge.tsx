import type { ReactNode } from "react";
import { classes } from "./classes.ts";

export type Tone = "good" | "warn" | "bad" | "accent" | "neutral";

const washes: Readonly<Record<Tone, string>> = {
  good: "bg-good-wash text-good",
  warn: "bg-warn-wash text-warn",
  bad: "bg-bad-wash text-bad",
  accent: "bg-accent-wash text-accent-text",
  neutral: "bg-hover text-soft",
};

interface BadgeProps {
  readonly tone?: Tone;
  /** Shows a dot that pulses, for something that runs. */
  readonly isLive?: boolean;
  readonly children: ReactNode;
}

/** Words and tones of the states of something. */
export type States<E extends number> = Readonly<Record<E, readonly [word: string, tone: Tone]>>;

interface StateBadgeProps<E extends number> {
  readonly states: States<E>;
  readonly state: E;
  readonly isLive?: boolean;
}

/** The word of a state. A state that a later release adds is shown as unknown. */
export function StateBadge<E extends number>({ states, state, isLive = false }: StateBadgeProps<E>) {
  const [word, tone] = states[state] ?? ["Unknown", "neutral"];
  return (
    <Badge tone={tone} isLive={isLive}>
      {word}
    </Badge>
  );
}

/** A word about a state. The colour only repeats what the word says. */
export function Badge({ tone = "neutral", isLive = false, children }: BadgeProps) {
  return (
    <span
      className={classes(
        "inline-flex h-5 items-center gap-1.5 rounded-full px-2 text-2xs font-medium whitespace-nowrap",
        washes[tone],
      )}
    >
      {isLive && (
        <span aria-hidden="true" className="relative flex size-1.5">
          <span className="absolute inset-0 animate-ping rounded-full bg-current opacity-60" />
          <span className="relative size-1.5 rounded-full bg-current" />
        </span>
      )}
      {children}
    </span>
  );
}
