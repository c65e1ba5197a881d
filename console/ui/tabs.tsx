import { Tabs as Radix } from "radix-ui";
import { type ReactNode, useEffect, useRef, useState } from "react";

export interface TabItem {
  readonly id: string;
  readonly title: string;
  /** Rendered only while the tab is open, so that its data is loaded then. */
  readonly content: () => ReactNode;
}

/** Tabs. The fragment of the address may name the tab that is open at first. */
export function Tabs({ label, items }: { readonly label: string; readonly items: readonly TabItem[] }) {
  const [open, setOpen] = useState(() => (items.find(({ id }) => `#${id}` === location.hash) ?? items[0])?.id ?? "");
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls after each change of the open tab
  useEffect(() => {
    const strip = list.current;
    const tab = strip?.querySelector<HTMLElement>("[data-state=active]");
    // `scrollIntoView` would also scroll the page.
    if (strip && tab) strip.scrollTo({ left: tab.offsetLeft - (strip.clientWidth - tab.offsetWidth) / 2 });
  }, [open]);
  return (
    <Radix.Root value={open} onValueChange={setOpen}>
      <Radix.List
        ref={list}
        aria-label={label}
        className="relative mb-4 flex gap-1 overflow-x-auto scroll-smooth border-b border-line motion-reduce:scroll-auto"
      >
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
