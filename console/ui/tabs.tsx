import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";

export interface TabItem {
  readonly id: string;
  readonly title: string;
  /** Rendered only while the tab is open, so that its data is loaded then. */
  readonly content: () => ReactNode;
}

export function Tabs({ label, items }: { readonly label: string; readonly items: readonly TabItem[] }) {
  return (
    <Radix.Root defaultValue={items[0]?.id ?? ""}>
      <Radix.List aria-label={label} className="mb-4 flex gap-1 overflow-x-auto border-b border-line">
        {items.map(({ id, title }) => (
          <Radix.Trigger
            key={id}
            value={id}
            className="-mb-px h-9 shrink-0 rounded-t-md border-b-2 border-transparent px-3 text-sm text-soft -outline-offset-2 hover:text-ink data-[state=active]:border-accent data-[state=active]:font-medium data-[state=active]:text-ink"
          >
            {title}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {items.map(({ id, content }) => (
        <Radix.Content key={id} value={id} className="rounded-lg">
          {content()}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
