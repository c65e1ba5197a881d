import type { TargetInfo, WireEvents } from "./cdp-session.ts";
import { type Envelope, innerBytes } from "./envelope.ts";

/** A command of somebody else's. */
export interface UserCommand {
  readonly method: string;
  /** JSON; empty for none. */
  readonly params: string | Buffer;
  /** One of his sessions; undefined for what he takes for the root. */
  readonly sessionId: string | undefined;
}

/** What is answered: the members behind the `id`, as JSON, or why there is no answer. */
export type UserAnswer = { readonly bytes: Buffer } | { readonly failure: string };

/** Hears of the sessions of a user. */
export interface UserListener {
  onAttached(event: WireEvents["Target.attachedToTarget"]): void;
  onDetached(event: WireEvents["Target.detachedFromTarget"]): void;
}

interface WireUserOptions extends UserListener {
  send(command: UserCommand & { readonly sessionId: string }, onAnswer: (answer: UserAnswer) => void): void;
  /** Hears that the user needs the browser no more; resolves when the browser has let go of all that was his. */
  onClose(): Promise<unknown>;
}

/**
 * Somebody else's way to a browser, as a connection of his own: what he takes for the root is a session of the whole
 * browser, and his targets are those that he was told of there.
 */
export class WireUser {
  /** Hears an event of one of his sessions: its members as JSON, and the session, undefined for what he takes for the root. */
  onevent?: (event: Envelope, members: Buffer, sessionId: string | undefined) => void;
  /** Hears that the browser has gone. */
  onclose?: () => void;
  readonly #root: string;
  /** His sessions, with their targets; that of the whole browser is nobody's. */
  readonly #targets = new Map<string, TargetInfo | undefined>();
  readonly #options: WireUserOptions;
  #isEnded = false;

  constructor(root: string, options: WireUserOptions) {
    this.#root = root;
    this.#targets.set(root, undefined);
    this.#options = options;
  }

  /** Whether a session is this user's. */
  owns(sessionId: string | undefined): boolean {
    return sessionId !== undefined && this.#targets.has(sessionId);
  }

  /** The target of one of his sessions; undefined for the whole browser. */
  targetOf(sessionId: string | undefined): TargetInfo | undefined {
    return this.#targets.get(sessionId ?? this.#root);
  }

  /** Sends a command. */
  send(command: UserCommand, onAnswer: (answer: UserAnswer) => void): void {
    this.#options.send({ ...command, sessionId: command.sessionId ?? this.#root }, onAnswer);
  }

  /** Gives the browser up; resolves when nothing is left there of what was his. */
  async close(): Promise<void> {
    const released = this.#options.onClose();
    this.end();
    await released;
  }

  /** Passes on an event of one of his sessions. */
  receive(event: Envelope): void {
    const { method, sessionId } = event;
    if (method === "Target.attachedToTarget") this.#attach(paramsOf(event));
    if (method === "Target.detachedFromTarget") this.#detach(paramsOf(event));
    this.onevent?.(event, innerBytes(event), sessionId === this.#root ? undefined : sessionId);
  }

  /** The browser has gone, for him at least. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.onclose?.();
  }

  #attach(child: WireEvents["Target.attachedToTarget"]): void {
    this.#targets.set(child.sessionId, child.targetInfo.type === "browser" ? undefined : child.targetInfo);
    this.#options.onAttached(child);
  }

  #detach(child: WireEvents["Target.detachedFromTarget"]): void {
    this.#targets.delete(child.sessionId);
    this.#options.onDetached(child);
  }
}

/** The boundary where the protocol's word is taken for what an event holds. */
function paramsOf<Params>({ bytes }: Envelope): Params {
  return JSON.parse(bytes.toString()).params;
}
