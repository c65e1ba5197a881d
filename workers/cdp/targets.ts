import type { CdpConnection } from "./cdp-connection.ts";
import type { CdpEvents, CdpSession, TargetInfo } from "./cdp-session.ts";
import type { UserListener } from "./connection-user.ts";

export interface AttachedTarget {
  readonly info: TargetInfo;
  readonly session: Pick<CdpSession, "send">;
}

export interface OwnTarget extends AttachedTarget {
  readonly session: CdpSession;
  /** The page, frame or worker that contains the target. Undefined for top-level targets, such as pages. */
  readonly parent: OwnTarget | undefined;
}

/** Prepares each new target before its scripts run, and each new session of a CDP client. */
export interface TargetPreparation {
  /** Prepares a new target, which stays paused until the promise settles. */
  own(target: OwnTarget): Promise<unknown>;
  /** Prepares a CDP client's session of a target. */
  shared(target: AttachedTarget): void;
}

/**
 * Receives opened and closed targets. A new target is still paused, so that the listener's commands run before its
 * scripts.
 */
export interface TargetListener {
  onOpened(target: OwnTarget): void;
  onClosed(target: OwnTarget): void;
}

const autoAttach = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };

/**
 * All open targets of a browser: pages, out-of-process frames and workers of every kind. Each target is paused before
 * its first script until it has been prepared.
 */
export class Targets implements UserListener {
  readonly #connection: CdpConnection;
  readonly #own = new Map<string, OwnTarget>();
  readonly #shared = new Map<string, AttachedTarget>();
  #preparation: TargetPreparation | undefined;
  readonly #listeners = new Set<TargetListener>();

  constructor(connection: CdpConnection) {
    this.#connection = connection;
  }

  /** Attaches to all existing and future targets. */
  async start(): Promise<void> {
    await this.#follow(this.#connection.root, undefined);
  }

  /** Sets the preparation of future targets and client sessions. */
  prepareWith(preparation: TargetPreparation): void {
    this.#preparation = preparation;
  }

  /** Adds a listener and calls it for all open targets. Returns a function that removes the listener. */
  listen(listener: TargetListener): () => void {
    this.#listeners.add(listener);
    for (const target of [...this.#own.values()]) listener.onOpened(target);
    return () => void this.#listeners.delete(listener);
  }

  get own(): Iterable<OwnTarget> {
    return this.#own.values();
  }

  /** The CDP clients' sessions of targets. */
  get shared(): Iterable<AttachedTarget> {
    return this.#shared.values();
  }

  /** Returns our session of a target. Undefined if the target is not open. */
  sessionOf(targetId: string): CdpSession | undefined {
    for (const { info, session } of this.#own.values()) if (info.targetId === targetId) return session;
    return undefined;
  }

  onAttached({ sessionId, targetInfo: info }: CdpEvents["Target.attachedToTarget"]): void {
    const target = { info, session: this.#connection.senderOf(sessionId) };
    this.#shared.set(sessionId, target);
    this.#preparation?.shared(target);
  }

  onDetached({ sessionId }: CdpEvents["Target.detachedFromTarget"]): void {
    this.#shared.delete(sessionId);
  }

  #follow(session: CdpSession, parent: OwnTarget | undefined): Promise<unknown> {
    session.on("Target.attachedToTarget", (event) => this.#open(event, parent));
    session.on("Target.detachedFromTarget", ({ sessionId }) => this.#close(sessionId));
    return session.send("Target.setAutoAttach", autoAttach);
  }

  #open({ sessionId, targetInfo: info }: CdpEvents["Target.attachedToTarget"], parent: OwnTarget | undefined): void {
    // Sessions of the whole browser belong to CDP clients and need no preparation.
    if (info.type === "browser") return;
    const session = this.#connection.session(sessionId);
    const target = { info, session, parent };
    this.#own.set(sessionId, target);
    // A target may close before it has been prepared.
    this.#follow(session, target).catch(() => undefined);
    for (const listener of this.#listeners) listener.onOpened(target);
    void this.#release(target);
  }

  #close(sessionId: string): void {
    const target = this.#own.get(sessionId);
    if (!target) return;
    this.#own.delete(sessionId);
    // Targets inside this target are closed here, because the browser does not report their end.
    for (const [id, { parent }] of this.#own) if (parent === target) this.#close(id);
    this.#connection.drop(sessionId);
    for (const listener of this.#listeners) listener.onClosed(target);
  }

  async #release(target: OwnTarget): Promise<void> {
    await this.#preparation?.own(target).catch(() => undefined);
    target.session.send("Runtime.runIfWaitingForDebugger").catch(() => undefined);
  }
}
