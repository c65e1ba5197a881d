import type { LiveAnswer } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { Failure, fail, failFields } from "../../src/platform/errors.ts";
import type { CdpSession, WireEvents } from "../cdp/cdp-session.ts";
import type { DialogDesk } from "../pages/dialog-desk.ts";
import { CommandProgress } from "../pages/progress.ts";
import type { QuestionDesk } from "../pages/question-desk.ts";
import type { Tab } from "../pages/tab.ts";
import { type FileChooser, type FileInput, giveFiles, giveNothing, inputOfChooser, readInput } from "./file-input.ts";
import type { SessionFiles } from "./session-files.ts";

/** Milliseconds that a page may take to say what its input takes, and to be given what a person has chosen. */
const readMs = 2_000;
const giveMs = 5_000;

export interface ChooserDeskParts {
  readonly dialogs: Pick<DialogDesk, "begin">;
  readonly questions: Pick<QuestionDesk, "ask" | "holder">;
  readonly files: Pick<SessionFiles, "pathOf">;
}

/** What a tab asks of the person who steers, until it is answered or does not matter any more. */
interface OpenChooser {
  /** How many documents the tab has come to. */
  readonly committed: number;
  readonly frameId: string;
  readonly end: (answer: "accepted" | "dismissed") => void;
  wait?: Disposable;
}

/** Gives file choosers of pages to who expects them, else to the person who steers; without one they are left without a file. */
export class ChooserDesk {
  readonly #parts: ChooserDeskParts;
  /** Who gives files to the next chooser of a tab. */
  readonly #expected = new Map<Tab, (chooser: FileChooser) => void>();
  /** Of each tab the newest: one opens many without asking for more than one press. */
  readonly #open = new Map<Tab, OpenChooser>();

  constructor(parts: ChooserDeskParts) {
    this.#parts = parts;
  }

  /** Looks after the file choosers of a tab. */
  attend(tab: Tab, pageId: string): void {
    const close = (isMeant: (open: OpenChooser) => boolean): void => {
      const open = this.#open.get(tab);
      if (open && isMeant(open)) this.#end(tab, open, "dismissed");
    };
    tab.listen({
      onSession: (session) =>
        session.on("Page.fileChooserOpened", (opening) => this.#take(session, opening, tab, pageId)),
      onNavigated: () => close(({ committed }) => committed !== tab.committed),
      onFrameGone: (id) => close(({ frameId }) => frameId === id),
      onCrashed: () => close(() => true),
      onClosed: () => close(() => true),
    });
  }

  /** Leaves the next file chooser of a tab to somebody, until that is disposed of. */
  expect(tab: Tab): Disposable & { readonly chooser: Promise<FileChooser> } {
    const { promise, resolve } = Promise.withResolvers<FileChooser>();
    this.#expected.set(tab, resolve);
    return { chooser: promise, [Symbol.dispose]: () => void this.#expected.delete(tab) };
  }

  #take(
    session: CdpSession,
    { mode, frameId, backendNodeId }: WireEvents["Page.fileChooserOpened"],
    tab: Tab,
    pageId: string,
  ): void {
    const multiple = mode === "selectMultiple";
    const end = this.#parts.dialogs.begin("file_chooser", multiple ? "asked for files" : "asked for a file");
    const chooser = backendNodeId === undefined ? undefined : { session, frameId, backendNodeId };
    const take = this.#expected.get(tab);
    if (chooser && take) {
      this.#expected.delete(tab);
      end("accepted");
      take(chooser);
    } else if (chooser && this.#parts.questions.holder !== undefined) {
      const earlier = this.#open.get(tab);
      if (earlier) this.#end(tab, earlier, "dismissed");
      const open = { committed: tab.committed, frameId, end };
      this.#open.set(tab, open);
      void this.#ask(chooser, { pageId, multiple }, tab, open);
    } else end("dismissed");
  }

  async #ask(
    chooser: FileChooser,
    asked: { pageId: string; multiple: boolean },
    tab: Tab,
    open: OpenChooser,
  ): Promise<void> {
    try {
      using progress = new CommandProgress(readMs, []);
      const input = await inputOfChooser(chooser, progress);
      const { accept, isFolder } = await readInput(input, progress);
      if (this.#open.get(tab) !== open) return;
      const question = { ...asked, kind: "file_chooser", accept };
      const wait = isFolder
        ? undefined
        : this.#parts.questions.ask(question, (given) => this.#give(input, given, tab, open));
      if (wait) open.wait = wait;
      else this.#end(tab, open, "dismissed");
    } catch {
      // The page has gone on, or hangs.
      this.#end(tab, open, "dismissed");
    }
  }

  /** Does what the person has answered; without an answer, nothing. */
  async #give(input: FileInput, given: LiveAnswer | undefined, tab: Tab, open: OpenChooser): Promise<void> {
    let answer: "accepted" | "dismissed" = "dismissed";
    try {
      using progress = new CommandProgress(giveMs, []);
      if (given?.accept) {
        await giveFiles(input, this.#pathsOf(given.files), progress);
        answer = "accepted";
      } else if (given) await giveNothing(input, progress);
    } catch (thrown) {
      if (thrown instanceof Failure) throw thrown;
      throw fail("not-found", {}, { detail: "the page does not ask that any more", cause: thrown });
    } finally {
      this.#end(tab, open, answer);
    }
  }

  #pathsOf(names: readonly string[]): string[] {
    if (names.length === 0) throw failFields("validation-failed", { "answer.files": "has no file" });
    return names.map((name, index) => {
      const path = this.#parts.files.pathOf(name);
      if (path !== undefined) return path;
      const fault = `the session has no file ${JSON.stringify(name)}`;
      throw failFields("validation-failed", { [`answer.files[${index}]`]: fault });
    });
  }

  #end(tab: Tab, open: OpenChooser, answer: "accepted" | "dismissed"): void {
    if (this.#open.get(tab) !== open) return;
    this.#open.delete(tab);
    open.wait?.[Symbol.dispose]();
    open.end(answer);
  }
}
