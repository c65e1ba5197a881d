import { SessionConsoleEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { CdpSession, LoggedValue } from "../cdp/cdp-session.ts";
import type { EventFeed } from "./event-feed.ts";
import type { Tab } from "./tab.ts";

/** How much of a line that a page writes to its console is passed on. */
const lineLength = 2_000;

/** How many lines a session may write within a second before its consoles are not listened to for the next one. */
export const consoleBounds = { linesPerSecond: 1_000 };

const windowMs = 1_000;

/**
 * What pages write to their consoles. It is listened to only while somebody watches, and no longer than a page keeps to
 * the bound: each line is a message that two processes of the browser, and this one, work for.
 */
export class ConsoleTap {
  readonly #feed: EventFeed;
  readonly #tabs = new Set<Tab>();
  #isOn = false;
  #since = 0;
  #lines = 0;
  /** Runs while the consoles are not listened to. */
  #rest: NodeJS.Timeout | undefined;

  constructor(feed: EventFeed) {
    this.#feed = feed;
  }

  /** Passes on what a tab writes, while it is turned on. */
  attend(tab: Tab): void {
    this.#tabs.add(tab);
    tab.listen({ onSession: (session) => this.#follow(session), onClosed: () => this.#tabs.delete(tab) });
  }

  turn(isOn: boolean): void {
    this.#isOn = isOn;
    clearTimeout(this.#rest);
    this.#rest = undefined;
    this.#switchAll();
  }

  #follow(session: CdpSession): void {
    session.on("Runtime.consoleAPICalled", ({ type, args }) => {
      if (!this.#isListening) return;
      const text = args.map(textOf).join(" ").slice(0, lineLength).toWellFormed();
      this.#feed.publish(SessionConsoleEventSchema, { level: type, text });
      this.#count();
    });
    if (this.#isListening) this.#switch(session);
  }

  get #isListening(): boolean {
    return this.#isOn && this.#rest === undefined;
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
    const text = `the pages have written ${linesPerSecond} lines within a second: those of the next second are left out`;
    this.#feed.publish(SessionConsoleEventSchema, { level: "warning", text });
    this.#rest = setTimeout(() => {
      this.#rest = undefined;
      this.#switchAll();
    }, windowMs).unref();
    this.#switchAll();
  }

  #switchAll(): void {
    for (const tab of this.#tabs) for (const session of tab.sessions) this.#switch(session);
  }

  #switch(session: CdpSession): void {
    // Lines of before would all be told once more.
    if (this.#isListening) session.send("Runtime.discardConsoleEntries").catch(() => undefined);
    session.send(this.#isListening ? "Runtime.enable" : "Runtime.disable").catch(() => undefined);
  }
}

/** A value as the console would show it on one line. */
function textOf({ type, value, unserializableValue, description }: LoggedValue): string {
  if (type === "string") return String(value);
  return unserializableValue ?? description ?? String(value ?? type);
}
