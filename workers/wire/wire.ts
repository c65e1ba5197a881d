import { AsyncLocalStorage } from "node:async_hooks";
import type { Readable, Writable } from "node:stream";
import { CdpSession, type WireEvents } from "./cdp-session.ts";
import { PipeReader } from "./pipe-reader.ts";
import type { WireMessage } from "./wire-message.ts";
import { WireUser } from "./wire-user.ts";

/** Hears of what is thrown where nobody catches it, in what a browser's messages have set going. */
export const faultOwner = new AsyncLocalStorage<(error: unknown) => void>();

/** Whoever waits for the answer to a command. */
type OnAnswer = (answer: WireMessage) => void;

/** A command that was not answered yet. */
interface Pending {
  readonly sessionId: string | undefined;
  readonly onAnswer: OnAnswer;
}

/** Hears of the sessions of a user. */
export interface UserListener {
  onAttached(event: WireEvents["Target.attachedToTarget"]): void;
  onDetached(event: WireEvents["Target.detachedFromTarget"]): void;
}

/** What a command is answered whose browser has gone. */
const gone = "the browser has gone";

/** What one is answered whose target has gone: the browser says nothing. */
const closed = "Target closed";

/** What one is answered whose renderer has crashed: the browser says nothing here either. */
const crashed = "Target crashed";

/** What one is answered whose answer was skipped. */
const tooLong = "the browser's answer is longer than can be read";

/**
 * The pipe of a browser, shared by us and by others who speak the DevTools protocol. Each of these has a session of the
 * whole browser to itself, so that nobody sees another's targets, events or answers; ids are given out here.
 */
export class Wire {
  /** Our own session of the whole browser. */
  readonly root: CdpSession;
  readonly #input: Writable;
  readonly #reader: PipeReader;
  readonly #onFault: (error: unknown) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #ours = new Map<string, CdpSession>();
  readonly #users = new Set<WireUser>();
  #lastId = 0;
  #isClosed = false;

  /** `onFault` hears of what was thrown by whoever heard a message: the browser is of no use any more. */
  constructor(input: Writable, output: Readable, onFault: (error: unknown) => void) {
    this.#input = input;
    this.#onFault = onFault;
    this.root = this.#makeSession(undefined);
    // What cannot be written was written to a browser that has gone, which its exit tells.
    input.on("error", () => undefined);
    output.on("error", () => undefined);
    this.#reader = new PipeReader(output, {
      onMessage: (text) => this.#guard(() => this.#receive(JSON.parse(text))),
      onSkipped: (head) => this.#guard(() => this.#receiveSkipped(head)),
    });
  }

  /** Our own session of a target that the browser has told us of. */
  session(sessionId: string): CdpSession {
    const known = this.#ours.get(sessionId);
    if (known) return known;
    const session = this.#makeSession(sessionId);
    this.#ours.set(sessionId, session);
    return session;
  }

  /** Forgets a session of ours whose target has gone, and fails what was asked of it. */
  drop(sessionId: string): void {
    this.#ours.delete(sessionId);
    this.#failPending(sessionId, closed);
  }

  /** A way to send commands on somebody else's session. */
  borrow(sessionId: string): Pick<CdpSession, "send"> {
    return this.#makeSession(sessionId);
  }

  /** Lets somebody else use the browser; his sessions are told of before he hears of them. */
  async attach(listener: UserListener): Promise<WireUser> {
    const { sessionId } = await this.root.send("Target.attachToBrowserTarget");
    const user = new WireUser(sessionId, {
      onAttached: (event) => listener.onAttached(event),
      onDetached: (event) => listener.onDetached(event),
      send: (message, onAnswer) => this.#send(message, onAnswer),
      onClose: () => this.#detach(user, sessionId),
    });
    this.#users.add(user);
    return user;
  }

  /** The browser has gone: whoever waits for an answer, or uses it, hears of that. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#reader.close();
    this.#input.destroy();
    for (const user of this.#users) user.end();
    for (const id of this.#pending.keys()) this.#guard(() => this.#receive({ id, error: { message: gone } }));
  }

  #makeSession(sessionId: string | undefined): CdpSession {
    return new CdpSession((method, params = {}) => {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const command = { method, params: { ...params }, ...(sessionId !== undefined && { sessionId }) };
      this.#send(command, ({ result, error }) => {
        if (error) reject(new Error(`${method}: ${error.message}`));
        else resolve(result);
      });
      return promise;
    });
  }

  #send(command: WireMessage, onAnswer: OnAnswer): void {
    if (this.#isClosed) {
      onAnswer({ error: { message: gone } });
      return;
    }
    this.#lastId += 1;
    this.#pending.set(this.#lastId, { sessionId: command.sessionId, onAnswer });
    this.#input.write(`${JSON.stringify({ ...command, id: this.#lastId })}\0`);
  }

  #receive(message: WireMessage): void {
    if (message.id !== undefined) {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      pending?.onAnswer(message);
      return;
    }
    const { sessionId, method = "", params } = message;
    const ours = sessionId === undefined ? this.root : this.#ours.get(sessionId);
    if (ours && method === "Inspector.targetCrashed") this.#failPending(sessionId, crashed);
    if (ours) ours.emit(method, params);
    else for (const user of this.#users) if (user.owns(sessionId)) user.receive(message);
  }

  #failPending(sessionId: string | undefined, message: string): void {
    for (const [id, pending] of this.#pending) {
      if (pending.sessionId === sessionId) this.#receive({ id, error: { message } });
    }
  }

  /** Fails the command whose answer was skipped; an event that was skipped is lost. */
  #receiveSkipped(head: string): void {
    const id = /^\{"id":(\d+)/.exec(head)?.[1];
    if (id !== undefined) this.#receive({ id: Number(id), error: { message: tooLong } });
  }

  #detach(user: WireUser, sessionId: string): void {
    if (!this.#users.delete(user)) return;
    this.root.send("Target.detachFromTarget", { sessionId }).catch(() => undefined);
  }

  /** Runs what may throw, now or in what it leaves to be done: the fault is this browser's, and nobody else's. */
  #guard(work: () => void): void {
    faultOwner.run(this.#onFault, () => {
      try {
        work();
      } catch (error) {
        this.#onFault(error);
      }
    });
  }
}
