import { type Envelope, innerBytes } from "./cdp-envelope.ts";
import type { CdpEvents, TargetInfo } from "./cdp-session.ts";

export interface UserCommand {
  readonly method: string;
  /** Parameters as JSON, or empty. */
  readonly params: string | Buffer;
  /** One of the client's sessions. Undefined for the client's root session. */
  readonly sessionId: string | undefined;
}

/** The answer's members after `id` as JSON, or the reason why there is no answer. */
export type UserAnswer = { readonly bytes: Buffer } | { readonly failure: string };

/** Receives the opened and closed CDP sessions of a client. */
export interface UserListener {
  onAttached(event: CdpEvents["Target.attachedToTarget"]): void;
  onDetached(event: CdpEvents["Target.detachedFromTarget"]): void;
}

interface ConnectionUserOptions extends UserListener {
  send(command: UserCommand & { readonly sessionId: string }, onAnswer: (answer: UserAnswer) => void): void;
  /** Called when the client disconnects. Resolves when the browser has released the client's state. */
  onClose(): Promise<unknown>;
}

/**
 * A CDP client's connection to a browser. The client's root session covers the whole browser and announces the client's
 * targets.
 */
export class ConnectionUser {
  /** Receives the client's events: the event, its members as JSON, and its session (undefined for the root session). */
  onevent?: (event: Envelope, members: Buffer, sessionId: string | undefined) => void;
  /** Called once, when the browser has exited or the client is disconnected. */
  onclose?: () => void;
  readonly #root: string;
  /** The client's sessions with their targets. The root session has no target. */
  readonly #targets = new Map<string, TargetInfo | undefined>();
  readonly #options: ConnectionUserOptions;
  #isEnded = false;

  constructor(root: string, options: ConnectionUserOptions) {
    this.#root = root;
    this.#targets.set(root, undefined);
    this.#options = options;
  }

  owns(sessionId: string | undefined): boolean {
    return sessionId !== undefined && this.#targets.has(sessionId);
  }

  /** Returns the target of one of the client's sessions. Undefined for the whole browser. */
  targetOf(sessionId: string | undefined): TargetInfo | undefined {
    return this.#targets.get(sessionId ?? this.#root);
  }

  send(command: UserCommand, onAnswer: (answer: UserAnswer) => void): void {
    this.#options.send({ ...command, sessionId: command.sessionId ?? this.#root }, onAnswer);
  }

  /** Disconnects the client. Resolves when the browser has released the client's state. */
  async close(): Promise<void> {
    const released = this.#options.onClose();
    this.end();
    await released;
  }

  /** Forwards an event of one of the client's sessions to the client. */
  receive(event: Envelope): void {
    const { method, sessionId } = event;
    if (method === "Target.attachedToTarget") this.#attach(paramsOf(event));
    if (method === "Target.detachedFromTarget") this.#detach(paramsOf(event));
    this.onevent?.(event, innerBytes(event), sessionId === this.#root ? undefined : sessionId);
  }

  /** Calls `onclose`, unless it has been called. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.onclose?.();
  }

  #attach(child: CdpEvents["Target.attachedToTarget"]): void {
    this.#targets.set(child.sessionId, child.targetInfo.type === "browser" ? undefined : child.targetInfo);
    this.#options.onAttached(child);
  }

  #detach(child: CdpEvents["Target.detachedFromTarget"]): void {
    this.#targets.delete(child.sessionId);
    this.#options.onDetached(child);
  }
}

/** The boundary where event parameters get the protocol's types. */
function paramsOf<Params>({ bytes }: Envelope): Params {
  return JSON.parse(bytes.toString()).params;
}
