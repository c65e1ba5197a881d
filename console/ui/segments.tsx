import { ToggleGroup } from "radix-ui";

interface SegmentsProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly choices: readonly (readonly [T, string])[];
  readonly onChoose: (value: T) => void;
}

/** A few choices side by side, of which one is selected. */
export function Segments<T extends string>({ label, value, choices, onChoose }: SegmentsProps<T>) {
  return (
    <ToggleGroup.Root
      type="single"
      aria-label={label}
      value={value}
      onValueChange={(next) => next !== "" && onChoose(next as T)}
      className="flex w-fit max-w-full flex-wrap gap-0.5 rounded-lg border border-line bg-sunken p-0.5"
    >
      {choices.map(([id, title]) => (
        <ToggleGroup.Item
          key={id}
          value={id}
          className="h-7 shrink-0 rounded-md px-3 text-sm text-soft transition-colors -outline-offset-2 hover:text-ink data-[state=on]:bg-surface data-[state=on]:font-medium data-[state=on]:text-ink data-[state=on]:shadow-low"
        >
          {title}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}
