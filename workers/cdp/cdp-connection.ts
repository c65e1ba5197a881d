import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { withFaultHandler } from "../../src/platform/last-resort.ts";
import { inSpan } from "../../src/platform/traces/spans.ts";
import { type Envelope, innerBytes, readEnvelope } from "./cdp-envelope.ts";
import { CdpSession } from "./cdp-session.ts";
import { ConnectionUser, type UserAnswer, type UserCommand, type UserListener } from "./connection-user.ts";
import { pipeBounds } from "./pipe-bounds.ts";
import { PipeReader } from "./pipe-reader.ts";

/** A command without an answer yet. */
interface Pending {
  readonly sessionId: string | undefined;
  /** Called with the browser's answer, or with the reason why there is no answer. */
  settle(answer: Envelope | { readonly failure: string }): void;
}

const gone = "the browser has exited";

/** Error if the target has closed, in which case the browser sends no answer. */
const closed = "Target closed";

/** Error if the renderer has crashed, in which case the browser sends no answer. */
const crashed = "Target crashed";

/** Error if the answer was skipped. */
export const tooLong = "the browser's answer exceeds the size limit";

/**
 * The pipe of a browser, shared with CDP clients. Each client has a session of the whole browser, so the client sees
 * only its own targets, events and answers. Command ids are assigned here.
 */
export class CdpConnection {
  /** Our own session of the whole browser. */
  readonly root: CdpSession;
  readonly #input: Writable;
  readonly #reader: PipeReader;
  readonly #onFault: (error: unknown) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #ours = new Map<string, CdpSession>();
  readonly #users = new Set<ConnectionUser>();
  #lastId = 0;
  #isClosed = false;

  /** `onFault` receives errors thrown by message handlers. The browser is unusable afterwards. */
  constructor(input: Writable, output: Readable, onFault: (error: unknown) => void) {
    this.#input = input;
    this.#onFault = onFault;
    this.root = this.#makeSession(undefined);
    // Write errors mean that the browser has exited, which is reported separately.
    input.on("error", () => undefined);
    output.on("error", () => undefined);
    this.#reader = new PipeReader(output, {
      onMessage: (message) => this.#guard(() => this.#receive(readEnvelope(message))),
      onSkipped: (head) => this.#guard(() => this.#receiveSkipped(head)),
    });
  }

  /** Returns our session of an announced target. */
  session(sessionId: string): CdpSession {
    const known = this.#ours.get(sessionId);
    if (known) return known;
    const session = this.#makeSession(sessionId);
    this.#ours.set(sessionId, session);
    return session;
  }

  /** Forgets the session of a closed target and fails its pending commands. */
  drop(sessionId: string): void {
    this.#ours.delete(sessionId);
    this.#failPending(sessionId, closed);
  }

  /** Returns a sender for a CDP client's session. */
  senderOf(sessionId: string): Pick<CdpSession, "send"> {
    return this.#makeSession(sessionId);
  }

  /** Attaches a CDP client. `listener` is notified of the client's sessions before the client is. */
  async attach(listener: UserListener): Promise<ConnectionUser> {
    const { sessionId } = await this.root.send("Target.attachToBrowserTarget");
    const user = new ConnectionUser(sessionId, {
      onAttached: (event) => listener.onAttached(event),
      onDetached: (event) => listener.onDetached(event),
      send: (command, onAnswer) => this.#sendFor(command, onAnswer),
      onClose: () => this.#detach(user, sessionId),
    });
    this.#users.add(user);
    return user;
  }

  /** Disconnects all clients and fails all pending commands. Later commands fail, too. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#reader.close();
    this.#input.destroy();
    for (const user of this.#users) user.end();
    for (const id of this.#pending.keys()) this.#guard(() => this.#settle(id, { failure: gone }));
  }

  /** Resolves when the pipe accepts more data or is already closed. Rejects if the signal aborts or the pipe fails. */
  async drained(signal: AbortSignal): Promise<void> {
    if (!this.#input.writableNeedDrain || this.#isClosed) return;
    const settled = new AbortController();
    const options = { signal: AbortSignal.any([signal, settled.signal]) };
    await Promise.race([once(this.#input, "drain", options), once(this.#input, "close", options)]).finally(() =>
      settled.abort(),
    );
  }

  #makeSession(sessionId: string | undefined): CdpSession {
    const send = (method: string, params: object): Promise<unknown> => {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const settle: Pending["settle"] = (answer) => {
        const isTooLong =
          "bytes" in answer && answer.bytes.length > (pipeBounds.answersBytes[method] ?? Number.POSITIVE_INFINITY);
        const read = isTooLong ? { failure: tooLong } : answer;
        const { result, error } = "bytes" in read ? parse(read) : { error: { message: read.failure } };
        if (error) reject(new Error(`${method}: ${error.message}`));
        else resolve(result);
      };
      this.#send({ method, params: JSON.stringify(params), sessionId }, { sessionId, settle });
      return promise;
    };
    return new CdpSession((method, params = {}) =>
      inSpan(method, { kind: "client", attributes: { "cdp.method": method } }, () => send(method, params)),
    );
  }

  #sendFor(command: UserCommand & { sessionId: string }, onAnswer: (answer: UserAnswer) => void): void {
    this.#send(command, {
      sessionId: command.sessionId,
      settle: (answer) => onAnswer("bytes" in answer ? { bytes: innerBytes(answer) } : answer),
    });
  }

  /** Writes a command without copying a large payload. */
  #send({ method, params, sessionId }: UserCommand, pending: Pending): void {
    if (this.#isClosed) {
      pending.settle({ failure: gone });
      return;
    }
    this.#lastId += 1;
    this.#pending.set(this.#lastId, pending);
    const session = sessionId === undefined ? "" : `,"sessionId":${JSON.stringify(sessionId)}`;
    const head = `{"id":${this.#lastId},"method":${JSON.stringify(method)}${session}`;
    this.#corkWrites();
    if (typeof params === "string") {
      this.#input.write(`${head}${params === "" ? "" : `,"params":${params}`}}\0`);
      return;
    }
    this.#input.write(`${head},"params":`);
    this.#input.write(params);
    this.#input.write("}\0");
  }

  /**
   * Combines the writes of one tick: each write wakes the browser, which on few cores preempts this process for about 1
   * ms.
   */
  #corkWrites(): void {
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
      if (ours.listensTo(method)) ours.emit(method, parse(message).params);
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

  /** Fails the command of a skipped answer. A skipped event is lost. */
  #receiveSkipped(head: string): void {
    const id = /^\{"id":(\d+)/.exec(head)?.[1];
    if (id !== undefined) this.#settle(Number(id), { failure: tooLong });
  }

  async #detach(user: ConnectionUser, sessionId: string): Promise<void> {
    if (!this.#users.delete(user)) return;
    await this.root.send("Target.detachFromTarget", { sessionId }).catch(() => undefined);
  }

  /** Runs `work` and reports its errors, including later asynchronous errors, as faults of this browser. */
  #guard(work: () => void): void {
    withFaultHandler(this.#onFault, () => {
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

/** The boundary where a parsed message gets the protocol's type. */
function parse({ bytes }: Envelope): Parsed {
  return JSON.parse(bytes.toString());
}
