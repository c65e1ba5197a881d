import { decodeBytes } from "./base64.ts";
import { type CommandName, PageCommands } from "./commands.ts";
import { PilothouseConnectionError, PilothouseResponseError, slugOf } from "./errors.ts";
import type { CaptureRequest, Problem } from "./gen/schema.ts";
import { type CallOptions, startDeadline, type Transport } from "./transport.ts";

/** Message of the service: the result of a command, its error, a part of its capture, or an event without an id. */
interface DriveMessage {
  readonly id?: string;
  readonly error?: Problem;
  readonly capture?: { readonly bytes: number };
  readonly chunk?: string;
}

/** Command without a complete response. */
interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly chunks: Uint8Array<ArrayBuffer>[];
  /** Bytes of a capture, after its header. */
  bytes?: number;
}

/**
 * Subprotocol of the service, and prefix of the subprotocol with the key, since browsers cannot set WebSocket headers.
 */
const [protocol, bearer] = ["pilothouse.v1", "bearer."];

/**
 * Commands of a session over one WebSocket. They run in the order of their calls, each after the one before. Of the
 * options of a call, `signal`, `timeoutMs` and `idempotencyKey` apply: a command is never retried, and an abort leaves it
 * running in the session.
 */
export class Drive extends PageCommands implements AsyncDisposable {
  readonly #transport: Transport;
  readonly #socket: WebSocket;
  readonly #pending = new Map<string, Pending>();
  readonly #closed: Promise<void>;
  #lastId = 0;
  /** Error that ended the stream. */
  #failure: Error | undefined;

  private constructor(transport: Transport, socket: WebSocket) {
    super();
    this.#transport = transport;
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#receive(JSON.parse(String(data))));
    this.#closed = new Promise((resolve) => {
      socket.addEventListener("close", ({ code, reason }) => {
        this.#failure ??= new PilothouseConnectionError(`the stream was closed: ${code} ${reason}`);
        for (const { reject } of this.#pending.values()) reject(this.#failure);
        this.#pending.clear();
        resolve();
      });
    });
  }

  /** Connects to the session of a path. */
  static async open(transport: Transport, path: string, options: Pick<CallOptions, "signal"> = {}): Promise<Drive> {
    const deadline = startDeadline(transport.timeoutOf({}, {}), options.signal);
    const { baseUrl, key } = transport;
    deadline.signal.throwIfAborted();
    const socket = new WebSocket(`${baseUrl.replace(/^http/, "ws")}${path}/drive`, [protocol, bearer + key]);
    try {
      if (await opened(socket, deadline.signal)) return new Drive(transport, socket);
    } finally {
      deadline.stop();
    }
    // A WebSocket hides the response to a refused handshake. This request fails with the same problem.
    await transport.json("GET", `${path}/state`, {}, { ...options, maxRetries: 0 });
    throw new PilothouseConnectionError("no WebSocket could be opened");
  }

  /** Closes the stream after the responses to all commands. The session continues. */
  async close(): Promise<void> {
    while (this.#pending.size > 0 && this.#socket.readyState === WebSocket.OPEN) await this.#nextMessage();
    this.#socket.close(1000);
    await this.#closed;
  }

  /** Closes the stream. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  protected async send<Result>(command: CommandName, body: object, options: CallOptions = {}): Promise<Result> {
    const { signal, idempotencyKey } = options;
    const id = String(++this.#lastId);
    const message = { id, [command]: body, ...(idempotencyKey !== undefined && { idempotency_key: idempotencyKey }) };
    const deadline = startDeadline(this.#transport.timeoutOf({ body }, options), signal);
    try {
      return await new Promise<Result>((resolve, reject) => {
        deadline.signal.throwIfAborted();
        if (this.#failure) throw this.#failure;
        if (this.#socket.readyState !== WebSocket.OPEN) throw new PilothouseConnectionError("the stream is closed");
        deadline.signal.addEventListener("abort", () => reject(deadline.signal.reason), { once: true });
        // The service writes the response in the shape of its document.
        this.#pending.set(id, { resolve: (result) => resolve(result as Result), reject, chunks: [] });
        this.#socket.send(JSON.stringify(message));
      });
    } finally {
      deadline.stop();
    }
  }

  protected sendCapture(request: CaptureRequest, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>> {
    return this.send("capture", request, options);
  }

  #receive({ id, error, capture, chunk, ...results }: DriveMessage): void {
    if (id === undefined) {
      // An error of the whole stream, after which the service closes it.
      if (error) this.#failure = problemError(error);
      return;
    }
    const pending = this.#pending.get(id);
    if (!pending) return;
    if (capture) pending.bytes = capture.bytes;
    if (chunk !== undefined) pending.chunks.push(decodeBytes(chunk));
    if (error) pending.reject(problemError(error));
    else if (pending.bytes === undefined) pending.resolve(Object.values(results)[0]);
    else {
      if (sizeOf(pending.chunks) < pending.bytes) return;
      pending.resolve(join(pending.chunks));
    }
    this.#pending.delete(id);
  }

  /** Resolves after the next message, or when the socket closes. */
  #nextMessage(): Promise<void> {
    return new Promise((resolve) => {
      for (const type of ["message", "close"] as const)
        this.#socket.addEventListener(type, () => resolve(), { once: true });
    });
  }
}

/** Resolves to whether a socket opened. Rejects with the signal's reason. */
function opened(socket: WebSocket, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    socket.addEventListener("open", () => resolve(true));
    socket.addEventListener("error", () => resolve(false));
    signal.addEventListener("abort", () => {
      reject(signal.reason);
      socket.close();
    });
  });
}

function problemError(problem: Problem): PilothouseResponseError {
  const known = slugOf(problem) === "internal" ? { ...problem, type: "/errors/internal" } : problem;
  return new PilothouseResponseError({
    status: problem.status,
    problem: known,
    requestId: undefined,
    headers: new Headers(),
  });
}

const sizeOf = (chunks: readonly Uint8Array[]): number => chunks.reduce((sum, { length }) => sum + length, 0);

function join(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(sizeOf(chunks));
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
