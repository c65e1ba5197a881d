import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import type { BrowserContext, Dialog as BrowserDialog, Page, Response } from "playwright-core";
import { type Dialog, DialogSchema, SessionDialogEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { EventFeed } from "./event-feed.ts";
import { shownAddress } from "./shown-text.ts";

/** How many dialogs `state` shows. */
const keptDialogs = 10;

/** How much of a dialog's message is kept. */
const messageLength = 1_000;

/** What is answered: a page may tell something and may be left, but nobody has agreed to anything. */
const accepted = new Set(["alert", "beforeunload"]);

/** Answers whatever a page asks the person before it, at once and by policy, and keeps the last of it. */
export class DialogDesk {
  readonly #feed: EventFeed;
  readonly #dialogs: Dialog[] = [];

  constructor(context: BrowserContext, feed: EventFeed) {
    this.#feed = feed;
    context.on("dialog", (dialog) => this.#answer(dialog));
    // A popup's first answer comes before its page is known: only the context tells of it.
    context.on("response", (response) => this.#noteAuthentication(response));
  }

  /** The last 10, the newest last. */
  get dialogs(): readonly Dialog[] {
    return this.#dialogs;
  }

  /** Leaves file choosers of a page without a file. */
  attend(page: Page): void {
    page.on("filechooser", (chooser) => {
      this.record("file_chooser", chooser.isMultiple() ? "asked for files" : "asked for a file", "dismissed");
    });
  }

  /** Keeps a dialog with the answer it was given. */
  record(kind: string, message: string, answer: "accepted" | "dismissed"): void {
    const kept = message.slice(0, messageLength).toWellFormed();
    this.#dialogs.push(create(DialogSchema, { kind, message: kept, answer, at: timestampNow() }));
    if (this.#dialogs.length > keptDialogs) this.#dialogs.shift();
    this.#feed.publish(SessionDialogEventSchema, { kind, message: kept, answer });
  }

  /** Keeps that a document asked for a name and a password: a browser without a person shows the page of its 401. */
  #noteAuthentication(response: Response): void {
    if (response.status() !== 401 || !response.request().isNavigationRequest()) return;
    if (response.headers()["www-authenticate"] !== undefined)
      this.record("http_auth", shownAddress(response.url()), "dismissed");
  }

  #answer(dialog: BrowserDialog): void {
    const isAccepted = accepted.has(dialog.type());
    this.record(dialog.type(), dialog.message(), isAccepted ? "accepted" : "dismissed");
    // The page may have gone meanwhile, and its dialog with it.
    (isAccepted ? dialog.accept() : dialog.dismiss()).catch(() => undefined);
  }
}
