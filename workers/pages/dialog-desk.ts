import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type Dialog, DialogSchema, SessionDialogEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { CdpSession, WireEvents } from "../wire/cdp-session.ts";
import type { EventFeed } from "./event-feed.ts";
import { shownAddress } from "./shown-text.ts";
import type { Tab } from "./tab.ts";

/** How many dialogs `state` shows. */
const keptDialogs = 10;

/** How much of a dialog's message is kept. */
const messageLength = 1_000;

/** What is answered: a page may tell something and may be left, but nobody has agreed to anything. */
const accepted = new Set(["alert", "beforeunload"]);

/** A file chooser that a page has opened for an input. */
export interface FileChooser {
  readonly session: CdpSession;
  readonly frameId: string;
  readonly backendNodeId: number;
}

/** Answers whatever a page asks the person before it, at once and by policy, and keeps the last of it. */
export class DialogDesk {
  /** How long somebody else may take to answer a dialog of a page before it is answered here. */
  patienceMs: (targetId: string) => number = () => 0;
  readonly #feed: EventFeed;
  readonly #dialogs: Dialog[] = [];
  /** Who gives files to the next chooser of a tab. */
  readonly #expected = new Map<Tab, (chooser: FileChooser) => void>();

  constructor(feed: EventFeed) {
    this.#feed = feed;
  }

  /** The last 10, the newest last. */
  get dialogs(): readonly Dialog[] {
    return this.#dialogs;
  }

  /** Answers what a tab asks; file choosers that nobody expects are left without a file. */
  attend(tab: Tab): void {
    tab.listen({ onSession: (session) => this.#follow(session, tab) });
    // A browser without a person shows the page of its 401.
    tab.traffic.listen({ onLoginWanted: (url) => this.record("http_auth", shownAddress(url), "dismissed") });
  }

  /** Leaves the next file chooser of a tab to somebody, until that is disposed of. */
  expectChooser(tab: Tab): Disposable & { readonly chooser: Promise<FileChooser> } {
    const { promise, resolve } = Promise.withResolvers<FileChooser>();
    this.#expected.set(tab, resolve);
    return { chooser: promise, [Symbol.dispose]: () => void this.#expected.delete(tab) };
  }

  /** Keeps a dialog with the answer it was given. */
  record(kind: string, message: string, answer: "accepted" | "dismissed"): void {
    this.#tell(this.#keep(kind, message, answer));
  }

  #follow(session: CdpSession, tab: Tab): void {
    let open: Dialog | undefined;
    let timer: NodeJS.Timeout | undefined;
    session.on("Page.javascriptDialogOpening", ({ type, message }) => {
      const patienceMs = this.patienceMs(tab.target.info.targetId);
      open = this.#keep(type, message, "pending");
      if (patienceMs === 0) answer(session, type);
      else timer = setTimeout(() => answer(session, type), patienceMs);
    });
    session.on("Page.javascriptDialogClosed", ({ result }) => {
      clearTimeout(timer);
      if (!open) return;
      open.answer = result ? "accepted" : "dismissed";
      this.#tell(open);
      open = undefined;
    });
    session.on("Page.fileChooserOpened", ({ mode, frameId, backendNodeId }) => {
      const take = backendNodeId === undefined ? undefined : this.#expected.get(tab);
      const message = mode === "selectMultiple" ? "asked for files" : "asked for a file";
      this.record("file_chooser", message, take ? "accepted" : "dismissed");
      if (!take || backendNodeId === undefined) return;
      this.#expected.delete(tab);
      take({ session, frameId, backendNodeId });
    });
  }

  #keep(kind: string, message: string, answer: string): Dialog {
    const kept = message.slice(0, messageLength).toWellFormed();
    const dialog = create(DialogSchema, { kind, message: kept, answer, at: timestampNow() });
    this.#dialogs.push(dialog);
    if (this.#dialogs.length > keptDialogs) this.#dialogs.shift();
    return dialog;
  }

  #tell({ kind, message, answer }: Dialog): void {
    this.#feed.publish(SessionDialogEventSchema, { kind, message, answer });
  }
}

/** The page may have gone meanwhile, and its dialog with it; somebody else may have answered. */
function answer(session: CdpSession, type: WireEvents["Page.javascriptDialogOpening"]["type"]): void {
  session.send("Page.handleJavaScriptDialog", { accept: accepted.has(type) }).catch(() => undefined);
}
