import type { Download } from "./messages.ts";
import type { Transfers } from "./transfers.ts";
import { find, hasControl, type Shown } from "./view.ts";

/** Milliseconds until the URL of a file is revoked. The browser needs the URL until it has started to save. */
const savingMs = 60_000;

const endings: Readonly<Record<string, string>> = {
  running: "is being downloaded",
  failed: "failed",
  refused: "was refused: it is too large",
};

function sizeOf(bytes: number): string {
  if (bytes === 1) return "1 byte";
  const power = Math.min(3, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const digits = power > 0 && bytes / 1_000 ** power < 10 ? 1 : 0;
  return `${(bytes / 1_000 ** power).toFixed(digits)} ${["bytes", "kB", "MB", "GB"][power]}`;
}

export interface DownloadParts {
  readonly fetch: Transfers["fetch"];
  /** Shows the person an error. */
  showMessage(why: string): void;
  /** Returns the keyboard focus to the picture. */
  focusPicture(): void;
}

/** Creates the list of downloads for the person in control. Returns a function that updates the list. */
export function createDownloads({ fetch, showMessage, focusPicture }: DownloadParts) {
  const list = find("downloads", HTMLUListElement);
  const dismissed = new Set<string>();
  let before = "";
  let latest: Shown | undefined;

  async function save({ file_name: name }: Download, button: HTMLButtonElement): Promise<void> {
    button.disabled = true;
    try {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await fetch(name));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), savingMs);
    } catch (thrown) {
      showMessage(`The download failed: ${thrown instanceof Error ? thrown.message : "the file was not received"}.`);
    } finally {
      button.disabled = false;
    }
  }

  function button(text: string, name: string, press: (made: HTMLButtonElement) => void): HTMLButtonElement {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", name);
    made.addEventListener("click", () => press(made));
    return made;
  }

  function item(download: Download): HTMLLIElement {
    const { id, file_name: name, status } = download;
    const made = document.createElement("li");
    const text = document.createElement("span");
    const isReady = status === "finished";
    text.textContent = isReady
      ? `${name}, ${sizeOf(Number(download.bytes ?? 0))}`
      : `${name} ${endings[status] ?? status}`;
    made.append(text);
    if (isReady) made.append(button("Save", `Save ${name}`, (pressed) => void save(download, pressed)));
    const dismiss = button("\u00d7", `Dismiss ${name}`, () => {
      dismissed.add(id);
      if (latest) show(latest);
      focusPicture();
    });
    if (status !== "running") made.append(dismiss);
    return made;
  }

  function show(now: Shown): void {
    latest = now;
    const offered = hasControl(now) ? (now.state?.downloads ?? []) : [];
    const open = offered.filter(({ id }) => !dismissed.has(id));
    const current = JSON.stringify(open);
    if (current === before) return;
    before = current;
    const all: (Element | null)[] = [...list.querySelectorAll("button")];
    const focused = all.indexOf(document.activeElement);
    list.replaceChildren(...open.map(item));
    if (focused >= 0) list.querySelectorAll("button")[focused]?.focus();
    list.hidden = open.length === 0;
  }

  return show;
}
