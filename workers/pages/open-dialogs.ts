import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import type { LiveAnswer } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { type Dialog, DialogSchema, SessionDialogEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { CdpEvents, CdpSession } from "../cdp/cdp-session.ts";
import { cutText, withoutLookahead } from "../injected/plain-text.ts";
import type { EventFeed } from "./event-feed.ts";
import type { PendingQuestions } from "./pending-questions.ts";
import { shownAddress } from "./shown-text.ts";
import type { Tab } from "./tab.ts";

/** Maximum number of dialogs that are kept and listed in the session's `state`. */
const keptDialogs = 10;

/** Maximum characters of a dialog's message. */
const messageLength = 1_000;

/** Kinds of dialogs that the policy accepts. The policy dismisses all other dialogs, which request consent or input. */
const accepted = new Set(["alert", "beforeunload"]);

type Opening = CdpEvents["Page.javascriptDialogOpening"];

type DialogAnswer = "accepted" | "dismissed";

/**
 * Forwards dialogs of pages to the person in control, leaves them to CDP clients, or answers them by policy. Keeps the
 * last dialogs.
 */
export class OpenDialogs {
  /**
   * Returns the milliseconds for which a dialog of a target is left to CDP clients before the policy answers. 0 if no
   * CDP client receives the dialog.
   */
  clientAnswerMs: (targetId: string) => number = () => 0;
  readonly #feed: EventFeed;
  readonly #questions: PendingQuestions;
  readonly #dialogs: Dialog[] = [];

  constructor(feed: EventFeed, questions: PendingQuestions) {
    this.#feed = feed;
    this.#questions = questions;
  }

  /** The last 10 dialogs, newest last. */
  get dialogs(): readonly Dialog[] {
    return this.#dialogs;
  }

  watchTab(tab: Tab, pageId: string): void {
    tab.listen({ onSession: (session) => this.#follow(session, tab, pageId) });
    // HTTP logins are only recorded: the browser dismisses the login and shows the body of the 401 response.
    tab.traffic.listen({ onLoginWanted: (url) => this.record("http_auth", shownAddress(url), "dismissed") });
  }

  record(kind: string, message: string, answer: DialogAnswer): void {
    this.begin(kind, message)(answer);
  }

  /** Records a pending dialog. Returns a function to record its answer. */
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
      open = { dialog: this.#keep(type, message, "pending"), wait: this.#handle(session, opening, tab, pageId) };
    });
    session.on("Page.javascriptDialogClosed", ({ result }) => {
      if (!open) return;
      this.#end(open.dialog, result ? "accepted" : "dismissed");
      close();
    });
    tab.listen({ onCrashed: close, onClosed: close });
  }

  /**
   * Forwards a dialog to the person in control, leaves it to CDP clients for `clientAnswerMs`, or answers it by policy.
   * Dispose of the result to withdraw the question or to stop the timer.
   */
  #handle(session: CdpSession, opening: Opening, tab: Tab, pageId: string): Disposable | undefined {
    const { type: kind, message, defaultPrompt = "" } = opening;
    const question = { pageId, kind, message: shortText(message), defaultText: shortText(defaultPrompt) };
    const pending = this.#questions.ask(question, (given) => answer(session, kind, given));
    const clientAnswerMs = pending ? 0 : this.clientAnswerMs(tab.target.info.targetId);
    if (!pending && clientAnswerMs === 0) void answer(session, kind);
    if (pending || clientAnswerMs === 0) return pending;
    const timer = setTimeout(() => void answer(session, kind), clientAnswerMs);
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

/** Cuts a page's text for the person in control. Removes the lookahead without masking: this person may see secrets. */
const shortText = (text: string): string => withoutLookahead(keptText(text));

/** Cuts a page's text, and copies it: V8's slice would keep the whole string in memory. */
function keptText(text: string): string {
  return Buffer.from(cutText(text, messageLength)).toString();
}

/** Answers a dialog. Ignores errors: the page may be gone, or the dialog may already be answered. */
async function answer(session: CdpSession, kind: string, given?: LiveAnswer): Promise<void> {
  const { accept = accepted.has(kind), text: promptText } = given ?? {};
  const answered = { accept, ...(promptText !== undefined && { promptText }) };
  await session.send("Page.handleJavaScriptDialog", answered).catch(() => undefined);
}
