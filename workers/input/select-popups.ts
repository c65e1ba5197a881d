import { setTimeout } from "node:timers/promises";
import type { LiveAnswer } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import type { PendingQuestions } from "../pages/pending-questions.ts";
import { CommandProgress, type Progress } from "../pages/progress.ts";
import type { SessionPage } from "../pages/session-page.ts";
import type { Tab } from "../pages/tab.ts";
import type { Keyboard } from "./keyboard.ts";
import { findKey } from "./keys.ts";
import { findOpenSelect, isOpen, type OpenSelect, readOptions, releaseSelect, stepsTo } from "./open-select.ts";
import { inputOf } from "./page-input.ts";

/** Longest time in milliseconds to find and read an open list. */
const checkMs = 2_000;
/** Longest time in milliseconds to apply a choice. */
const chooseMs = 5_000;

/** Minimum delay in milliseconds between two checks. */
const pauseMs = 50;

/** A list offered to the person in control. */
interface OpenList {
  readonly select: OpenSelect;
  readonly tab: Tab;
  readonly labels: ReadonlyMap<number, string>;
  wait?: Disposable;
}

/**
 * Offers the options of an open `<select>` to the person in control, since screenshots do not show the browser's list.
 * Choices are sent as keys to the browser's own list, so the page receives its usual events.
 */
export class SelectPopups {
  readonly #questions: Pick<PendingQuestions, "ask" | "holder">;
  #open: OpenList | undefined;
  /** The page to check next. */
  #next: SessionPage | undefined;
  #isChecking = false;

  constructor(questions: Pick<PendingQuestions, "ask" | "holder">) {
    this.#questions = questions;
  }

  /** Withdraws the list of a tab when the tab navigates, crashes or closes. */
  watchTab(tab: Tab): void {
    const close = (): void => {
      if (this.#open?.tab === tab) this.#end(this.#open);
    };
    tab.listen({
      onNavigated: (_frame, isMain) => {
        if (isMain) close();
      },
      onCrashed: close,
      onClosed: close,
    });
  }

  /** Called when a page has handled input that may have opened or closed a list. */
  onInputHandled(page: SessionPage): void {
    if (this.#questions.holder === undefined) return;
    this.#next = page;
    if (!this.#isChecking) void this.#checkPages();
  }

  async #checkPages(): Promise<void> {
    this.#isChecking = true;
    for (let page = this.#next; page; page = this.#next) {
      this.#next = undefined;
      // Ignores errors: the page may be gone or hang.
      await this.#check(page).catch(() => undefined);
      await setTimeout(pauseMs);
    }
    this.#isChecking = false;
  }

  async #check(page: SessionPage): Promise<void> {
    const { tab } = page;
    using progress = new CommandProgress(checkMs, []);
    const known = this.#open;
    if (known && (await isOpen(known.select, progress).catch(() => false))) return;
    if (known) this.#end(known);
    const select = await findOpenSelect(tab, progress);
    if (!select) return;
    const { name, options } = await readOptions(select, progress);
    const labels = new Map(options.map(({ index, label }) => [index, label]));
    const open: OpenList = { select, tab, labels };
    const question = { pageId: page.id, kind: "select", message: name, options };
    const wait = this.#questions.ask(question, (answer) => this.#choose(open, answer));
    if (!wait) return releaseSelect(select);
    open.wait = wait;
    this.#open = open;
  }

  /**
   * Applies the person's choice. Closes the list if the person chose no option or did not answer. Throws `not-found` if
   * the list no longer has the option.
   */
  async #choose(open: OpenList, answer: LiveAnswer | undefined): Promise<void> {
    const { select, tab, labels } = open;
    const { keyboard } = inputOf(tab.session);
    using progress = new CommandProgress(chooseMs, []);
    try {
      const { accept = false, option: index = -1 } = answer ?? {};
      if (!accept) await this.#press(open, keyboard, "Escape", progress);
      else {
        const wanted = { index, label: labels.get(index) ?? "" };
        // If the page is gone, the option is not available.
        const steps = await stepsTo(select, wanted, progress).catch(() => null);
        if (steps === null) throw fail("not-found", {}, { detail: "the list no longer has this option" });
        const keys = ["Home", ...Array<string>(steps).fill("ArrowDown")];
        await progress.race(Promise.all(keys.map((key) => press(keyboard, key))));
        await this.#press(open, keyboard, "Enter", progress);
      }
    } finally {
      this.#end(open);
    }
  }

  /** Presses a key only while the list is open. */
  async #press({ select }: OpenList, keyboard: Keyboard, key: string, progress: Progress): Promise<void> {
    if (await isOpen(select, progress).catch(() => false)) await progress.race(press(keyboard, key));
  }

  #end(open: OpenList): void {
    open.wait?.[Symbol.dispose]();
    if (this.#open === open) this.#open = undefined;
    releaseSelect(open.select);
  }
}

function press(keyboard: Keyboard, name: string): Promise<unknown> {
  const found = findKey(name);
  return found ? keyboard.press(found.key) : Promise.resolve();
}
