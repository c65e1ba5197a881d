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

/** Scheme of the browser's error pages. The failed request has an entry of its own. */
const errorPage = "chrome-error:";

/** Records what happens in the pages of a session. Enables nothing in the browser. */
export class LogRecorder {
  readonly #log: SessionLog;
  readonly #requests: RequestRecorder;

  constructor(log: SessionLog, feed: EventFeed) {
    this.#log = log;
    this.#requests = new RequestRecorder(log);
    feed.on(SessionDialogEventSchema, ({ kind = "", message = "", answer: outcome = "" }) => {
      // The message of a login is the URL of the document.
      const said = kind === "http_auth" ? { url: loggedAddress(message) } : this.#textOf(message);
      log.add({ type: "dialog", kind, outcome, ...said });
    });
    feed.on(SessionDownloadEventSchema, ({ fileName = "", bytes = 0n, status: outcome = "" }) => {
      log.add({ type: "download", fileName, bytes, outcome });
    });
    feed.on(SessionConsoleEventSchema, ({ level: kind = "", text = "" }) => {
      // At other levels consoles are read only while a client watches the session.
      if (log.isFull) log.add({ type: "console", kind, text: loggedText(text) });
    });
  }

  /** Records a tab of a page. */
  attend(tab: Tab, pageId: string): void {
    this.#requests.attend(tab, pageId);
    tab.listen({
      onNavigated: (frame, isMain) => {
        if (isMain && this.#log.isOn) this.#addNavigation(tab, pageId, frame);
      },
      onCrashed: () => {
        const url = loggedAddress(tab.url);
        this.#log.add({ type: "crash", pageId, url, error: "the renderer of the page ended" });
      },
    });
  }

  /** Records an uncaught exception, which the browser reports only while consoles are read. */
  addException(pageId: string, { text, exception, url, lineNumber, columnNumber }: ThrownException): void {
    if (!this.#log.isFull) return;
    const said = exception?.description ?? `${text} ${exception?.unserializableValue ?? exception?.value ?? ""}`;
    const position = `${lineNumber + 1}:${columnNumber + 1}`;
    const where = url ? { url: loggedAddress(url), position } : {};
    this.#log.add({ type: "exception", pageId, text: loggedText(said), ...where });
  }

  #addNavigation(tab: Tab, pageId: string, { url }: Frame): void {
    if (url.startsWith(errorPage)) return;
    const { answer } = tab.traffic;
    const isAnswered = answer !== undefined && url.split("#", 1)[0] === answer.url;
    const status = isAnswered ? { httpStatus: answer.status } : {};
    this.#log.add({ type: "navigation", pageId, url: loggedAddress(url), ...status });
  }

  /** Text of a page. Recorded with `full` only, because a page may show what was typed into it. */
  #textOf(text: string): { text?: string } {
    return this.#log.isFull ? { text: loggedText(text) } : {};
  }
}
