import type { Command, PageTab } from "./messages.ts";

/**
 * Creates the tab list, in which the person in control can activate and close tabs. Returns a function that updates the
 * list.
 */
export function createTabs(list: HTMLElement, command: (command: Command) => void) {
  let before = "";

  function button(name: string, text: string, wanted: Command, isInControl: boolean): HTMLButtonElement {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.disabled = !isInControl;
    made.setAttribute("aria-label", name);
    made.addEventListener("click", () => command(wanted));
    return made;
  }

  function item({ id, title, active = false }: PageTab, isInControl: boolean): HTMLLIElement {
    const made = document.createElement("li");
    const name = title || "Untitled page";
    const open = button(name, name, { kind: "activate_page", page_id: id }, isInControl);
    open.setAttribute("aria-pressed", String(active));
    made.append(open, button(`Close ${name}`, "×", { kind: "close_page", page_id: id }, isInControl));
    return made;
  }

  return (tabs: readonly PageTab[], isInControl: boolean): void => {
    const now = JSON.stringify([tabs, isInControl]);
    if (now === before) return;
    before = now;
    // Keeps the keyboard focus at the same position in the list.
    const all: (Element | null)[] = [...list.querySelectorAll("button")];
    const focused = all.indexOf(document.activeElement);
    list.replaceChildren(...tabs.map((tab) => item(tab, isInControl)));
    if (focused >= 0) list.querySelectorAll("button")[focused]?.focus();
  };
}
