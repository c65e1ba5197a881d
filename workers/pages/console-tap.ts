import { SessionConsoleEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { CdpSession, LoggedValue } from "../wire/cdp-session.ts";
import type { EventFeed } from "./event-feed.ts";
import type { Tab } from "./tab.ts";

/** How much of a line that a page writes to its console is passed on. */
const lineLength = 2_000;

/** What pages write to their consoles. It is listened to only while somebody watches: each line is a message. */
export class ConsoleTap {
  readonly #feed: EventFeed;
  readonly #tabs = new Set<Tab>();
  #isOn = false;

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
    for (const tab of this.#tabs) for (const session of tab.sessions) this.#switch(session);
  }

  #follow(session: CdpSession): void {
    session.on("Runtime.consoleAPICalled", ({ type, args }) => {
      const text = args.map(textOf).join(" ").slice(0, lineLength).toWellFormed();
      this.#feed.publish(SessionConsoleEventSchema, { level: type, text });
    });
    if (this.#isOn) this.#switch(session);
  }

  #switch(session: CdpSession): void {
    session.send(this.#isOn ? "Runtime.enable" : "Runtime.disable").catch(() => undefined);
  }
}

/** A value as the console would show it on one line. */
function textOf({ type, value, unserializableValue, description }: LoggedValue): string {
  if (type === "string") return String(value);
  return unserializableValue ?? description ?? String(value ?? type);
}
