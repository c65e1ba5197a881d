import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { ownFaults } from "../../src/platform/last-resort.ts";
import { CdpSession } from "./cdp-session.ts";
import { type Envelope, innerBytes, readEnvelope } from "./envelope.ts";
import { PipeReader } from "./pipe-reader.ts";
import { type UserAnswer, type UserCommand, type UserListener, WireUser } from "./wire-user.ts";

/** A command that was not answered yet. */
interface Pending {
  readonly sessionId: string | undefined;
  /** Hears the answer: all that the browser has said, or why it will say nothing. */
  settle(answer: Envelope | { readonly failure: string }): void;
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
      onMessage: (message) => this.#guard(() => this.#receive(readEnvelope(message))),
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
      send: (command, onAnswer) => this.#sendFor(command, onAnswer),
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
    for (const id of this.#pending.keys()) this.#guard(() => this.#settle(id, { failure: gone }));
  }

  /** Resolves when the browser has read what was written, so far that more may follow; rejects when the signal aborts. */
  async drained(signal: AbortSignal): Promise<void> {
    if (this.#input.writableNeedDrain && !this.#isClosed) await once(this.#input, "drain", { signal });
  }

  #makeSession(sessionId: string | undefined): CdpSession {
    return new CdpSession((method, params = {}) => {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const settle: Pending["settle"] = (answer) => {
        const { result, error } = "bytes" in answer ? parse(answer) : { error: { message: answer.failure } };
        if (error) reject(new Error(`${method}: ${error.message}`));
        else resolve(result);
      };
      this.#send({ method, params: JSON.stringify(params), sessionId }, { sessionId, settle });
      return promise;
    });
  }

  #sendFor(command: UserCommand & { sessionId: string }, onAnswer: (answer: UserAnswer) => void): void {
    this.#send(command, {
      sessionId: command.sessionId,
      settle: (answer) => onAnswer("bytes" in answer ? { bytes: innerBytes(answer) } : answer),
    });
  }

  /** Writes a command as one piece; what is large in it is not copied. */
  #send({ method, params, sessionId }: UserCommand, pending: Pending): void {
    if (this.#isClosed) {
      pending.settle({ failure: gone });
      return;
    }
    this.#lastId += 1;
    this.#pending.set(this.#lastId, pending);
    const session = sessionId === undefined ? "" : `,"sessionId":${JSON.stringify(sessionId)}`;
    const head = `{"id":${this.#lastId},"method":${JSON.stringify(method)}${session}`;
    this.#gather();
    if (typeof params === "string") {
      this.#input.write(`${head}${params === "" ? "" : `,"params":${params}`}}\0`);
      return;
    }
    this.#input.write(`${head},"params":`);
    this.#input.write(params);
    this.#input.write("}\0");
  }

  /**
   * Writes what is sent in one go as one piece: each piece wakes the browser, which takes this process's core from it for
   * a millisecond where there are few.
   */
  #gather(): void {
    if (this.#input.writableCorked > 0) return;
    this.#input.cork();
    process.nextTick(() => this.#input.uncork());
  }

  #receive(message: Envelope): void {
    if (message.id !== undefined) {
      this.#settle(message.id, message);
      return;
    }
    const { sessionId, method } = message;
    const ours = sessionId === undefined ? this.root : this.#ours.get(sessionId);
    if (ours) {
      if (method === "Inspector.targetCrashed") this.#failPending(sessionId, crashed);
      if (ours.hears(method)) ours.emit(method, parse(message).params);
      return;
    }
    for (const user of this.#users) if (user.owns(sessionId)) user.receive(message);
  }

  #settle(id: number, answer: Envelope | { readonly failure: string }): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.settle(answer);
  }

  #failPending(sessionId: string | undefined, failure: string): void {
    for (const [id, pending] of this.#pending) if (pending.sessionId === sessionId) this.#settle(id, { failure });
  }

  /** Fails the command whose answer was skipped; an event that was skipped is lost. */
  #receiveSkipped(head: string): void {
    const id = /^\{"id":(\d+)/.exec(head)?.[1];
    if (id !== undefined) this.#settle(Number(id), { failure: tooLong });
  }

  async #detach(user: WireUser, sessionId: string): Promise<void> {
    if (!this.#users.delete(user)) return;
    await this.root.send("Target.detachFromTarget", { sessionId }).catch(() => undefined);
  }

  /** Runs what may throw, now or in what it leaves to be done: the fault is this browser's, and nobody else's. */
  #guard(work: () => void): void {
    ownFaults(this.#onFault, () => {
      try {
        work();
      } catch (error) {
        this.#onFault(error);
      }
    });
  }
}

interface Parsed {
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

/** The boundary where the browser's word is taken for what a message of the protocol is. */
function parse({ bytes }: Envelope): Parsed {
  return JSON.parse(bytes.toString());
}
