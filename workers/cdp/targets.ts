import type { CdpSession, TargetInfo, WireEvents } from "./cdp-session.ts";
import type { Wire } from "./wire.ts";
import type { UserListener } from "./wire-user.ts";

/** A target with a session of it. */
export interface Target {
  readonly info: TargetInfo;
  readonly session: Pick<CdpSession, "send">;
}

/** A target with our own session of it. */
export interface OwnTarget extends Target {
  readonly session: CdpSession;
  /** The page, frame or worker that it is part of; undefined for pages. */
  readonly parent: OwnTarget | undefined;
}

/** What is done to targets before anybody else can do something to them. */
export interface TargetCare {
  /** Prepares one that has opened; it waits until that is done. */
  own(target: OwnTarget): Promise<unknown>;
  /** Prepares somebody else's session of one. */
  shared(target: Target): void;
}

/** Hears of targets as they come and go; one that has come waits, with what its listener sends it before all else. */
export interface TargetListener {
  onOpened(target: OwnTarget): void;
  onClosed(target: OwnTarget): void;
}

const autoAttach = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true };

/**
 * Whatever a browser has open: its pages, their frames in processes of their own, workers of every kind. Each waits,
 * before its first script, until it was prepared.
 */
export class Targets implements UserListener {
  readonly #wire: Wire;
  readonly #own = new Map<string, OwnTarget>();
  readonly #shared = new Map<string, Target>();
  #care: TargetCare | undefined;
  #listener: TargetListener | undefined;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Begins to attach to what there is, and to what comes. */
  async start(): Promise<void> {
    await this.#follow(this.#wire.root, undefined);
  }

  /** From now on whatever opens, and every session of somebody else, is prepared in this way. */
  prepareWith(care: TargetCare): void {
    this.#care = care;
  }

  /** From now on tells of what opens and closes; first of what is open. */
  listen(listener: TargetListener): void {
    this.#listener = listener;
    for (const target of [...this.#own.values()]) listener.onOpened(target);
  }

  /** All that are open. */
  get own(): Iterable<OwnTarget> {
    return this.#own.values();
  }

  /** Everybody else's sessions of them. */
  get shared(): Iterable<Target> {
    return this.#shared.values();
  }

  /** Our session of a target; undefined when it is not open. */
  sessionOf(targetId: string): CdpSession | undefined {
    for (const { info, session } of this.#own.values()) if (info.targetId === targetId) return session;
    return undefined;
  }

  onAttached({ sessionId, targetInfo: info }: WireEvents["Target.attachedToTarget"]): void {
    const target = { info, session: this.#wire.borrow(sessionId) };
    this.#shared.set(sessionId, target);
    this.#care?.shared(target);
  }

  onDetached({ sessionId }: WireEvents["Target.detachedFromTarget"]): void {
    this.#shared.delete(sessionId);
  }

  #follow(session: CdpSession, parent: OwnTarget | undefined): Promise<unknown> {
    session.on("Target.attachedToTarget", (event) => this.#open(event, parent));
    session.on("Target.detachedFromTarget", ({ sessionId }) => this.#close(sessionId));
    return session.send("Target.setAutoAttach", autoAttach);
  }

  #open({ sessionId, targetInfo: info }: WireEvents["Target.attachedToTarget"], parent: OwnTarget | undefined): void {
    // Sessions of the whole browser are those of its other users, and not ours to prepare.
    if (info.type === "browser") return;
    const session = this.#wire.session(sessionId);
    const target = { info, session, parent };
    this.#own.set(sessionId, target);
    // A target may be gone before it was prepared.
    this.#follow(session, target).catch(() => undefined);
    this.#listener?.onOpened(target);
    void this.#release(target);
  }

  #close(sessionId: string): void {
    const target = this.#own.get(sessionId);
    if (!target) return;
    this.#own.delete(sessionId);
    // What is part of it goes with it, untold.
    for (const [id, { parent }] of this.#own) if (parent === target) this.#close(id);
    this.#wire.drop(sessionId);
    this.#listener?.onClosed(target);
  }

  async #release(target: OwnTarget): Promise<void> {
    await this.#care?.own(target).catch(() => undefined);
    target.session.send("Runtime.runIfWaitingForDebugger").catch(() => undefined);
  }
}
