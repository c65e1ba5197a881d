import { setTimeout } from "node:timers/promises";
import type { LiveAnswer } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { CommandProgress, type Progress } from "../pages/progress.ts";
import type { QuestionDesk } from "../pages/question-desk.ts";
import type { SessionPage } from "../pages/session-page.ts";
import type { Tab } from "../pages/tab.ts";
import type { Keyboard } from "./keyboard.ts";
import { findKey } from "./keys.ts";
import { findOpenSelect, forget, isOpen, type OpenSelect, readOptions, stepsTo } from "./open-select.ts";
import { inputOf } from "./page-input.ts";

/** Milliseconds that a page may take to tell what is open, and to take a choice. */
const lookMs = 2_000;
const chooseMs = 5_000;

/** Milliseconds between two looks: a page that is pressed without end has other things to do. */
const pauseMs = 50;

/** A list that the person who steers chooses from. */
interface OpenList {
  readonly select: OpenSelect;
  readonly tab: Tab;
  readonly labels: ReadonlyMap<number, string>;
  wait?: Disposable;
}

/**
 * Offers the person who steers the options of a `<select>` whose list is open: the browser draws it where no picture shows
 * it. The list is the browser's own, which takes keys as from a person at its machine: the page hears what it always does.
 */
export class SelectDesk {
  readonly #questions: Pick<QuestionDesk, "ask" | "holder">;
  #open: OpenList | undefined;
  /** The page that is to be looked at next. */
  #next: SessionPage | undefined;
  #isLooking = false;

  constructor(questions: Pick<QuestionDesk, "ask" | "holder">) {
    this.#questions = questions;
  }

  /** Forgets what is open in a tab when its document goes. */
  attend(tab: Tab): void {
    const close = (): void => {
      if (this.#open?.tab === tab) this.#end(this.#open);
    };
    tab.listen({
      onNavigated: (_frame, isMain) => {
        if (isMain) close();
      },
      ...{ onCrashed: close, onClosed: close },
    });
  }

  /** Hears that a page has handled what a person did: that may have opened a list, or closed it. */
  touched(page: SessionPage): void {
    if (this.#questions.holder === undefined) return;
    this.#next = page;
    if (!this.#isLooking) void this.#lookOn();
  }

  async #lookOn(): Promise<void> {
    this.#isLooking = true;
    for (let page = this.#next; page; page = this.#next) {
      this.#next = undefined;
      // A page that has gone meanwhile, or hangs, has nothing to show.
      await this.#look(page).catch(() => undefined);
      await setTimeout(pauseMs);
    }
    this.#isLooking = false;
  }

  async #look(page: SessionPage): Promise<void> {
    const { tab } = page;
    using progress = new CommandProgress(lookMs, []);
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
    if (!wait) return forget(select);
    open.wait = wait;
    this.#open = open;
  }

  /** Does what the person has answered; what is cancelled, or not answered, is closed. */
  async #choose(open: OpenList, answer: LiveAnswer | undefined): Promise<void> {
    const { select, tab, labels } = open;
    const { keyboard } = inputOf(tab.session);
    using progress = new CommandProgress(chooseMs, []);
    try {
      const { accept = false, option: index = -1 } = answer ?? {};
      if (!accept) await this.#press(open, keyboard, "Escape", progress);
      else {
        const wanted = { index, label: labels.get(index) ?? "" };
        // What has gone from the page offers nothing.
        const steps = await stepsTo(select, wanted, progress).catch(() => null);
        if (steps === null) throw fail("not-found", {}, { detail: "the page does not offer that any more" });
        const keys = ["Home", ...Array<string>(steps).fill("ArrowDown")];
        await progress.race(Promise.all(keys.map((key) => press(keyboard, key))));
        await this.#press(open, keyboard, "Enter", progress);
      }
    } finally {
      this.#end(open);
    }
  }

  /** Presses a key that is for the list alone. */
  async #press({ select }: OpenList, keyboard: Keyboard, key: string, progress: Progress): Promise<void> {
    if (await isOpen(select, progress).catch(() => false)) await progress.race(press(keyboard, key));
  }

  #end(open: OpenList): void {
    open.wait?.[Symbol.dispose]();
    if (this.#open === open) this.#open = undefined;
    forget(open.select);
  }
}

function press(keyboard: Keyboard, name: string): Promise<unknown> {
  const found = findKey(name);
  return found ? keyboard.press(found.key) : Promise.resolve();
}
