import type { LiveAnswer } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { Failure, fail, failFields } from "../../src/platform/errors.ts";
import type { CdpEvents, CdpSession } from "../cdp/cdp-session.ts";
import type { OpenDialogs } from "../pages/open-dialogs.ts";
import type { PendingQuestions } from "../pages/pending-questions.ts";
import { CommandProgress } from "../pages/progress.ts";
import type { Tab } from "../pages/tab.ts";
import { cancelChooser, type FileChooser, type FileInput, inputOfChooser, readInput, setFiles } from "./file-input.ts";
import type { SessionFiles } from "./session-files.ts";

/** Deadline in milliseconds for reading a page's file input. */
const readMs = 2_000;
/** Deadline in milliseconds for applying a person's answer. */
const answerMs = 5_000;

export interface FileChoosersParts {
  readonly dialogs: Pick<OpenDialogs, "begin">;
  readonly questions: Pick<PendingQuestions, "ask" | "holder">;
  readonly files: Pick<SessionFiles, "pathOf">;
}

/** Open file chooser of a tab, shown to the control holder until answered or obsolete. */
interface OpenChooser {
  /** Number of documents that the tab had committed when the chooser opened. */
  readonly committed: number;
  readonly frameId: string;
  readonly end: (answer: "accepted" | "dismissed") => void;
  wait?: Disposable;
}

/** Routes file choosers to the command that called `expect`, or else to the control holder. Dismisses all others. */
export class FileChoosers {
  readonly #parts: FileChoosersParts;
  /** Callbacks that take the next chooser of a tab. */
  readonly #expected = new Map<Tab, (chooser: FileChooser) => void>();
  /** The newest chooser per tab: a page can open several choosers after one click. */
  readonly #open = new Map<Tab, OpenChooser>();

  constructor(parts: FileChoosersParts) {
    this.#parts = parts;
  }

  watchTab(tab: Tab, pageId: string): void {
    const close = (matches: (open: OpenChooser) => boolean): void => {
      const open = this.#open.get(tab);
      if (open && matches(open)) this.#end(tab, open, "dismissed");
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

  /** Claims the next file chooser of a tab until disposed of. */
  expect(tab: Tab): Disposable & { readonly chooser: Promise<FileChooser> } {
    const { promise, resolve } = Promise.withResolvers<FileChooser>();
    this.#expected.set(tab, resolve);
    return { chooser: promise, [Symbol.dispose]: () => void this.#expected.delete(tab) };
  }

  #take(
    session: CdpSession,
    { mode, frameId, backendNodeId }: CdpEvents["Page.fileChooserOpened"],
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
    chooserInfo: { pageId: string; multiple: boolean },
    tab: Tab,
    open: OpenChooser,
  ): Promise<void> {
    try {
      using progress = new CommandProgress(readMs, []);
      const input = await inputOfChooser(chooser, progress);
      const { accept, isFolder } = await readInput(input, progress);
      if (this.#open.get(tab) !== open) return;
      const question = { ...chooserInfo, kind: "file_chooser", accept };
      const wait = isFolder
        ? undefined
        : this.#parts.questions.ask(question, (answer) => this.#applyAnswer(input, answer, tab, open));
      if (wait) open.wait = wait;
      else this.#end(tab, open, "dismissed");
    } catch {
      // An error means that the page has navigated or hangs.
      this.#end(tab, open, "dismissed");
    }
  }

  /** Applies the person's answer. Without an answer, the page is left unchanged. */
  async #applyAnswer(input: FileInput, answer: LiveAnswer | undefined, tab: Tab, open: OpenChooser): Promise<void> {
    let outcome: "accepted" | "dismissed" = "dismissed";
    try {
      using progress = new CommandProgress(answerMs, []);
      if (answer?.accept) {
        await setFiles(input, this.#pathsOf(answer.files), "answer", progress);
        outcome = "accepted";
      } else if (answer) await cancelChooser(input, progress);
    } catch (thrown) {
      if (thrown instanceof Failure) throw thrown;
      throw fail("not-found", {}, { detail: "the file chooser is no longer open", cause: thrown });
    } finally {
      this.#end(tab, open, outcome);
    }
  }

  #pathsOf(names: readonly string[]): string[] {
    if (names.length === 0) throw failFields("validation-failed", { "answer.files": "must name at least one file" });
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
