import type { CdpSession, TargetInfo, WireEvents } from "./cdp-session.ts";
import type { UserListener, Wire } from "./wire.ts";

/** A target with a session of it. */
export interface Target {
  readonly info: TargetInfo;
  readonly session: Pick<CdpSession, "send">;
}

/** A target with our own session of it. */
export interface OwnTarget extends Target {
  readonly session: CdpSession;
}

/** What is done to targets before anybody else can do something to them. */
export interface TargetCare {
  /** Prepares one that has opened; it waits until that is done. */
  own(target: OwnTarget): Promise<unknown>;
  /** Prepares somebody else's session of one. */
  shared(target: Target): void;
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

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Begins to attach to what there is, and to what comes. */
  async start(): Promise<void> {
    await this.#follow(this.#wire.root);
  }

  /** From now on whatever opens, and every session of somebody else, is prepared in this way. */
  prepareWith(care: TargetCare): void {
    this.#care = care;
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

  #follow(session: CdpSession): Promise<unknown> {
    session.on("Target.attachedToTarget", (event) => this.#open(event));
    session.on("Target.detachedFromTarget", ({ sessionId }) => {
      this.#own.delete(sessionId);
      this.#wire.drop(sessionId);
    });
    return session.send("Target.setAutoAttach", autoAttach);
  }

  #open({ sessionId, targetInfo: info }: WireEvents["Target.attachedToTarget"]): void {
    // Sessions of the whole browser are those of its other users, and not ours to prepare.
    if (info.type === "browser") return;
    const session = this.#wire.session(sessionId);
    const target = { info, session };
    this.#own.set(sessionId, target);
    // A target may be gone before it was prepared.
    this.#follow(session).catch(() => undefined);
    void this.#release(target);
  }

  async #release(target: OwnTarget): Promise<void> {
    await this.#care?.own(target).catch(() => undefined);
    target.session.send("Runtime.runIfWaitingForDebugger").catch(() => undefined);
  }
}
