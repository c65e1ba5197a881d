import type { ConnectOverCDPTransport } from "playwright-core";
import type { WireEvents } from "./cdp-session.ts";
import type { UserListener } from "./wire.ts";
import type { WireMessage } from "./wire-message.ts";

interface WireUserOptions extends UserListener {
  send(message: WireMessage, onAnswer: (answer: WireMessage) => void): void;
  /** Hears that the user needs the browser no more. */
  onClose(): void;
}

/**
 * Somebody else's way to a browser, as a connection of his own: what he takes for the root is a session of the whole
 * browser, and his targets are those that he was told of there.
 */
export class WireUser implements ConnectOverCDPTransport {
  onmessage?: (message: object) => void;
  onclose?: (reason?: string) => void;
  readonly #root: string;
  readonly #sessions: Set<string>;
  readonly #options: WireUserOptions;
  #isEnded = false;

  constructor(root: string, options: WireUserOptions) {
    this.#root = root;
    this.#sessions = new Set([root]);
    this.#options = options;
  }

  /** Whether events of a session are this user's. */
  owns(sessionId: string | undefined): boolean {
    return sessionId !== undefined && this.#sessions.has(sessionId);
  }

  /** Sends a command; the answer comes under the id that it has here. */
  send(message: WireMessage): void {
    const { id, sessionId = this.#root } = message;
    this.#options.send({ ...message, sessionId }, (answer) => {
      if (id !== undefined) this.#deliver({ ...answer, id, sessionId });
    });
  }

  /** Gives the browser up. */
  close(): void {
    this.#options.onClose();
    this.end();
  }

  /** Passes on an event of one of his sessions. */
  receive(event: WireMessage): void {
    const { method, params } = event;
    // The boundary where the protocol's word is taken for what these two events hold.
    const child = params as WireEvents["Target.attachedToTarget"];
    if (method === "Target.attachedToTarget") {
      this.#sessions.add(child.sessionId);
      this.#options.onAttached(child);
    }
    if (method === "Target.detachedFromTarget") {
      this.#sessions.delete(child.sessionId);
      this.#options.onDetached(child);
    }
    this.#deliver(event);
  }

  /** The browser has gone, for him at least. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.onclose?.();
  }

  /** Each message in a turn of its own: Playwright begins to listen when an answer has come, for the event behind it. */
  #deliver({ sessionId, ...rest }: WireMessage): void {
    const message = sessionId === this.#root ? rest : { ...rest, sessionId };
    setImmediate(() => this.onmessage?.(message));
  }
}
