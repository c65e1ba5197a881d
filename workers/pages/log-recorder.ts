import {
  SessionConsoleEventSchema,
  SessionDialogEventSchema,
  SessionDownloadEventSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { ThrownException } from "../cdp/cdp-session.ts";
import type { EventFeed } from "./event-feed.ts";
import { loggedAddress, loggedText } from "./log-text.ts";
import { RequestRecorder } from "./request-recorder.ts";
import type { SessionLog } from "./session-log.ts";
import type { Frame, Tab } from "./tab.ts";

/** Scheme of the browser's error pages, which are not recorded: the failed request has its own entry. */
const errorPage = "chrome-error:";

/**
 * Records navigations, crashes, requests, dialogs, downloads and, at level `full`, console lines and exceptions of a
 * session's pages. Enables no CDP events itself.
 */
export class LogRecorder {
  readonly #log: SessionLog;
  readonly #requests: RequestRecorder;

  constructor(log: SessionLog, feed: EventFeed) {
    this.#log = log;
    this.#requests = new RequestRecorder(log);
    feed.on(SessionDialogEventSchema, ({ kind = "", message = "", answer: outcome = "" }) => {
      // For an HTTP login, the message is the URL of the document.
      const content = kind === "http_auth" ? { url: loggedAddress(message) } : this.#textOf(message);
      log.add({ type: "dialog", kind, outcome, ...content });
    });
    feed.on(SessionDownloadEventSchema, ({ fileName = "", bytes = 0n, status: outcome = "" }) => {
      log.add({ type: "download", fileName, bytes, outcome });
    });
    feed.on(SessionConsoleEventSchema, ({ level: kind = "", text = "" }) => {
      // At other levels, console lines arrive only while a client reads events, so the log would have gaps.
      if (log.isFull) log.add({ type: "console", kind, text: loggedText(text) });
    });
  }

  /** Records the navigations, crashes and requests of a page's tab. */
  watchTab(tab: Tab, pageId: string): void {
    this.#requests.watchTab(tab, pageId);
    tab.listen({
      onNavigated: (frame, isMain) => {
        if (isMain && this.#log.isOn) this.#addNavigation(tab, pageId, frame);
      },
      onCrashed: () => {
        const url = loggedAddress(tab.url);
        this.#log.add({ type: "crash", pageId, url, error: "the page's renderer process crashed" });
      },
    });
  }

  /** Records an uncaught exception. Called only while `ConsoleTap` is enabled. */
  addException(pageId: string, { text, exception, url, lineNumber, columnNumber }: ThrownException): void {
    if (!this.#log.isFull) return;
    const thrownText = exception?.description ?? `${text} ${exception?.unserializableValue ?? exception?.value ?? ""}`;
    const position = `${lineNumber + 1}:${columnNumber + 1}`;
    const where = url ? { url: loggedAddress(url), position } : {};
    this.#log.add({ type: "exception", pageId, text: loggedText(thrownText), ...where });
  }

  #addNavigation(tab: Tab, pageId: string, { url }: Frame): void {
    if (url.startsWith(errorPage)) return;
    const { answer } = tab.traffic;
    const isAnswered = answer !== undefined && url.split("#", 1)[0] === answer.url;
    const status = isAnswered ? { httpStatus: answer.status } : {};
    this.#log.add({ type: "navigation", pageId, url: loggedAddress(url), ...status });
  }

  /**
   * Returns the field `text` for a text of a page. Returns no field unless the level is `full`, because pages may show
   * what was typed.
   */
  #textOf(text: string): { text?: string } {
    return this.#log.isFull ? { text: loggedText(text) } : {};
  }
}
