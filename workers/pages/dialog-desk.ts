import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import type { LiveAnswer } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { type Dialog, DialogSchema, SessionDialogEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { CdpSession, WireEvents } from "../cdp/cdp-session.ts";
import type { EventFeed } from "./event-feed.ts";
import type { QuestionDesk } from "./question-desk.ts";
import { shownAddress } from "./shown-text.ts";
import type { Tab } from "./tab.ts";

/** How many dialogs `state` shows. */
const keptDialogs = 10;

/** How much of a dialog's message is kept. */
const messageLength = 1_000;

/** What is answered: a page may tell something and may be left, but nobody has agreed to anything. */
const accepted = new Set(["alert", "beforeunload"]);

type Opening = WireEvents["Page.javascriptDialogOpening"];

type DialogAnswer = "accepted" | "dismissed";

/** Answers whatever a page asks, by policy unless a person steers who is asked, and keeps the last of it. */
export class DialogDesk {
  /** How long somebody else may take to answer a dialog of a page before it is answered here. */
  patienceMs: (targetId: string) => number = () => 0;
  readonly #feed: EventFeed;
  readonly #questions: QuestionDesk;
  readonly #dialogs: Dialog[] = [];

  constructor(feed: EventFeed, questions: QuestionDesk) {
    this.#feed = feed;
    this.#questions = questions;
  }

  /** The last 10, the newest last. */
  get dialogs(): readonly Dialog[] {
    return this.#dialogs;
  }

  /** Answers what a tab asks. */
  attend(tab: Tab, pageId: string): void {
    tab.listen({ onSession: (session) => this.#follow(session, tab, pageId) });
    // A browser without a person shows the page of its 401.
    tab.traffic.listen({ onLoginWanted: (url) => this.record("http_auth", shownAddress(url), "dismissed") });
  }

  /** Keeps a dialog with the answer it was given. */
  record(kind: string, message: string, answer: DialogAnswer): void {
    this.begin(kind, message)(answer);
  }

  /** Keeps a dialog that is yet to be answered; the answer is told to what it gives. */
  begin(kind: string, message: string): (answer: DialogAnswer) => void {
    const dialog = this.#keep(kind, message, "pending");
    return (answer) => this.#end(dialog, answer);
  }

  #follow(session: CdpSession, tab: Tab, pageId: string): void {
    let open: { readonly dialog: Dialog; readonly wait: Disposable | undefined } | undefined;
    const close = (): void => {
      open?.wait?.[Symbol.dispose]();
      open = undefined;
    };
    session.on("Page.javascriptDialogOpening", (opening) => {
      const { type, message } = opening;
      close();
      open = { dialog: this.#keep(type, message, "pending"), wait: this.#hold(session, opening, tab, pageId) };
    });
    session.on("Page.javascriptDialogClosed", ({ result }) => {
      if (!open) return;
      this.#end(open.dialog, result ? "accepted" : "dismissed");
      close();
    });
    tab.listen({ onCrashed: close, onClosed: close });
  }

  /** Leaves a dialog to the person who steers, to a CDP client that hears of it, or answers it by policy. */
  #hold(session: CdpSession, opening: Opening, tab: Tab, pageId: string): Disposable | undefined {
    const { type: kind, message, defaultPrompt = "" } = opening;
    const question = { pageId, kind, message: keptText(message), defaultText: keptText(defaultPrompt) };
    const asked = this.#questions.ask(question, (given) => answer(session, kind, given));
    const patienceMs = asked ? 0 : this.patienceMs(tab.target.info.targetId);
    if (!asked && patienceMs === 0) void answer(session, kind);
    if (asked || patienceMs === 0) return asked;
    const timer = setTimeout(() => void answer(session, kind), patienceMs);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  }

  #keep(kind: string, message: string, answer: string): Dialog {
    const dialog = create(DialogSchema, { kind, message: keptText(message), answer, at: timestampNow() });
    this.#dialogs.push(dialog);
    if (this.#dialogs.length > keptDialogs) this.#dialogs.shift();
    return dialog;
  }

  #end(dialog: Dialog, answer: DialogAnswer): void {
    dialog.answer = answer;
    const { kind, message } = dialog;
    this.#feed.publish(SessionDialogEventSchema, { kind, message, answer });
  }
}

/** Cuts a text of a page's to what is kept. A copy: a slice would keep all of the text that it is of. */
function keptText(text: string): string {
  return Buffer.from(text.slice(0, messageLength)).toString();
}

/** The page may have gone meanwhile, and its dialog with it; somebody else may have answered. */
async function answer(session: CdpSession, kind: string, given?: LiveAnswer): Promise<void> {
  const { accept = accepted.has(kind), text: promptText } = given ?? {};
  const answered = { accept, ...(promptText !== undefined && { promptText }) };
  await session.send("Page.handleJavaScriptDialog", answered).catch(() => undefined);
}
