import { SessionConsoleEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { CdpSession, LoggedValue, ThrownException } from "../cdp/cdp-session.ts";
import { cutText } from "../injected/plain-text.ts";
import type { EventFeed } from "./event-feed.ts";
import type { Tab } from "./tab.ts";

/** Maximum characters of a published console line. */
const lineLength = 2_000;

/** If the pages of a session write this many lines within a second, their consoles are muted for one second. */
export const consoleBounds = { linesPerSecond: 1_000 };

const windowMs = 1_000;

/**
 * Publishes the console output of pages, while the event feed has readers or the session's log records it. Muted above
 * the rate limit, because each line costs CPU in two browser processes and in this process.
 */
export class ConsoleTap {
  readonly #feed: EventFeed;
  readonly #onException: (pageId: string, exception: ThrownException) => void;
  readonly #tabs = new Set<Tab>();
  #isWatched = false;
  #isRecorded = false;
  #since = 0;
  #lines = 0;
  /** Set while the consoles are muted. */
  #muteTimer: NodeJS.Timeout | undefined;

  /** `onException` is called for uncaught exceptions of pages while enabled. */
  constructor(feed: EventFeed, onException: (pageId: string, exception: ThrownException) => void) {
    this.#feed = feed;
    this.#onException = onException;
  }

  /** Publishes the console lines of a tab while enabled. */
  watchTab(tab: Tab, pageId: string): void {
    this.#tabs.add(tab);
    tab.listen({ onSession: (session) => this.#follow(session, pageId), onClosed: () => this.#tabs.delete(tab) });
  }

  /** Called when the first reader subscribes to the feed, and when the last reader leaves. */
  setWatched(isWatched: boolean): void {
    this.#isWatched = isWatched;
    this.#restart();
  }

  /** Enables the consoles until the end of the session. */
  record(): void {
    this.#isRecorded = true;
    this.#restart();
  }

  #restart(): void {
    clearTimeout(this.#muteTimer);
    this.#muteTimer = undefined;
    this.#updateAll();
  }

  #follow(session: CdpSession, pageId: string): void {
    session.on("Runtime.exceptionThrown", ({ exceptionDetails }) => {
      if (!this.#isListening) return;
      this.#onException(pageId, exceptionDetails);
      this.#count();
    });
    session.on("Runtime.consoleAPICalled", ({ type, args }) => {
      if (!this.#isListening) return;
      const text = cutText(args.map(textOf).join(" "), lineLength);
      this.#feed.publish(SessionConsoleEventSchema, { level: type, text });
      this.#count();
    });
    if (this.#isListening) this.#update(session);
  }

  get #isListening(): boolean {
    return (this.#isWatched || this.#isRecorded) && this.#muteTimer === undefined;
  }

  #count(): void {
    const { linesPerSecond } = consoleBounds;
    const now = performance.now();
    if (now - this.#since >= windowMs) {
      this.#since = now;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines < linesPerSecond) return;
    const text = `the pages wrote ${linesPerSecond} lines within a second: the lines of the next second are dropped`;
    this.#feed.publish(SessionConsoleEventSchema, { level: "warning", text });
    this.#muteTimer = setTimeout(() => {
      this.#muteTimer = undefined;
      this.#updateAll();
    }, windowMs).unref();
    this.#updateAll();
  }

  #updateAll(): void {
    for (const tab of this.#tabs) for (const session of tab.sessions) this.#update(session);
  }

  #update(session: CdpSession): void {
    // Without this command, the browser would report earlier lines again.
    if (this.#isListening) session.send("Runtime.discardConsoleEntries").catch(() => undefined);
    session.send(this.#isListening ? "Runtime.enable" : "Runtime.disable").catch(() => undefined);
  }
}

/** Formats a logged value, similar to the console of the developer tools. */
function textOf({ type, value, unserializableValue, description }: LoggedValue): string {
  if (type === "string") return String(value);
  return unserializableValue ?? description ?? String(value ?? type);
}
