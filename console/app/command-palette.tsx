import { useNavigate } from "@tanstack/react-router";
import { ArrowRight } from "lucide-react";
import { Dialog } from "radix-ui";
import { type KeyboardEvent, useId, useState } from "react";
import { classes } from "../ui/classes.ts";
import { navigation } from "./navigation.ts";
import { pagePaths } from "./page-paths.ts";

interface Found {
  readonly title: string;
  readonly note: string;
  readonly to: string;
}

/** Pages that show an object, by the prefix of its id. */
const idPages: Readonly<Record<string, readonly [title: string, to: string]>> = {
  ses: ["Open the session", pagePaths.session],
  agt: ["Open the agent session", pagePaths.agent],
  rcp: ["Open the recipe", pagePaths.recipe],
  whk: ["Open the webhook endpoint", pagePaths.webhook],
  prf: ["Show profiles", pagePaths.profiles],
  key: ["Show API keys", pagePaths.apiKeys],
  mem: ["Show the team", pagePaths.team],
  aud: ["Show the audit log", pagePaths.auditLog],
};

const pages: readonly Found[] = navigation.flatMap(({ title: note, items }) =>
  items.map(({ title, to }) => ({ title, note, to })),
);

function find(text: string): readonly Found[] {
  const wanted = text.trim();
  const [, prefix = ""] = /^([a-z]{3})_[0-9a-z]{8,}$/.exec(wanted) ?? [];
  const known = idPages[prefix];
  if (known) {
    const [title, to] = known;
    return [{ title, note: wanted, to: to.replace("$id", wanted) }];
  }
  return pages.filter(({ title }) => title.toLowerCase().includes(wanted.toLowerCase()));
}

/** Finds pages by name, and the page of a pasted id. */
export function CommandPalette({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fade fixed inset-0 z-40 bg-[rgb(8_10_16/0.5)] backdrop-blur-[2px]" />
        <Dialog.Content
          aria-describedby={undefined}
          className="pop fixed inset-x-3 top-[12vh] z-50 mx-auto max-w-xl overflow-hidden rounded-2xl border border-line bg-raised shadow-high"
        >
          <Dialog.Title className="sr-only">Find pages and ids</Dialog.Title>
          <Finder onClose={onClose} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Finder({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const navigate = useNavigate();
  const id = useId();
  const found = find(text);
  const open = (item: Found | undefined): void => {
    if (!item) return;
    onClose();
    // Cast: the path is complete, and has no parameters left.
    void navigate({ to: item.to as "/" });
  };
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && found.length > 0) {
      event.preventDefault();
      setChosen((chosen + step + found.length) % found.length);
    } else if (event.key === "Enter") {
      open(found[chosen]);
    }
  };
  return (
    <>
      <input
        role="combobox"
        aria-label="Page or id"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length > 0 ? `${id}-${chosen}` : undefined}
        placeholder="Find a page, or paste an id"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setChosen(0);
        }}
        onKeyDown={press}
        className="h-12 w-full border-b border-line bg-transparent px-4 text-base outline-none"
      />
      <div id={id} role="listbox" aria-label="Found" className="max-h-80 overflow-auto p-1.5">
        {found.map((item, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text field handles the keys of the list
          <div
            key={`${item.to}${item.note}`}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => open(item)}
            onMouseMove={() => setChosen(index)}
            className={classes(
              "flex h-9 cursor-pointer items-center gap-3 rounded-lg px-3 text-sm",
              index === chosen && "bg-hover",
            )}
          >
            <span className="flex-1 truncate">{item.title}</span>
            <span className="truncate text-xs text-faint">{item.note}</span>
            <ArrowRight size={13} aria-hidden="true" className="text-faint" />
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="px-4 pb-4 text-sm text-soft">Nothing has this name.</p>}
    </>
  );
}
