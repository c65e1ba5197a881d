import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";

interface MenuProps {
  readonly trigger: ReactNode;
  readonly children: ReactNode;
  readonly align?: "start" | "end";
}

export function Menu({ trigger, children, align = "end" }: MenuProps) {
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="pop z-50 max-h-[70vh] min-w-52 overflow-auto rounded-xl border border-line bg-raised p-1 shadow-high"
        >
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

const itemClass =
  "flex h-8 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-sm outline-none select-none data-[highlighted]:bg-hover data-[disabled]:opacity-50";

export function MenuItem({ onSelect, children }: { readonly onSelect: () => void; readonly children: ReactNode }) {
  return (
    <DropdownMenu.Item className={itemClass} onSelect={onSelect}>
      {children}
    </DropdownMenu.Item>
  );
}

interface MenuChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly choices: readonly (readonly [T, string])[];
  readonly onChoose: (value: T) => void;
}

/** Choices of which one is selected. */
export function MenuChoice<T extends string>({ label, value, choices, onChoose }: MenuChoiceProps<T>) {
  return (
    <DropdownMenu.RadioGroup value={value} onValueChange={(next) => onChoose(next as T)} aria-label={label}>
      <MenuLabel>{label}</MenuLabel>
      {choices.map(([id, title]) => (
        <DropdownMenu.RadioItem key={id} value={id} className={`${itemClass} justify-between`}>
          <span className="min-w-0 truncate">{title}</span>
          <DropdownMenu.ItemIndicator>✓</DropdownMenu.ItemIndicator>
        </DropdownMenu.RadioItem>
      ))}
    </DropdownMenu.RadioGroup>
  );
}

export function MenuLabel({ children }: { readonly children: ReactNode }) {
  return <DropdownMenu.Label className="px-2.5 pt-2 pb-1 text-xs text-faint">{children}</DropdownMenu.Label>;
}

export function MenuLine() {
  return <DropdownMenu.Separator className="my-1 h-px bg-line" />;
}
