import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Point at which to hold a request: before one of its statements, or after its execution and before the reply. */
export interface HoldPoint {
  /** Starts at 1. */
  readonly statement: number;
  readonly when: "before" | "after";
  /** Counts only statements whose text matches; all if absent. */
  readonly among?: RegExp;
}

/**
 * Proxy in front of PostgreSQL that holds one client at a chosen statement. It counts only statements about a subject:
 * those whose parameters match, and later ones of their transaction.
 */
export class StatementProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #socketPath: string;
  readonly #subject: RegExp;
  readonly #except: RegExp;
  #point: HoldPoint | undefined;
  #held = Promise.withResolvers<void>();
  #seen: string[] = [];

  private constructor(socketPath: string, subject: RegExp, except: RegExp) {
    this.#socketPath = socketPath;
    this.#subject = subject;
    this.#except = except;
    this.#server = createServer((client) => this.#serve(client));
  }

  /** Listens on loopback in front of the server at a socket. */
  static async start(socketPath: string, subject: RegExp, except: RegExp): Promise<StatementProxy> {
    const proxy = new StatementProxy(socketPath, subject, except);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Statements counted since the last hold was set. */
  get seen(): readonly string[] {
    return this.#seen;
  }

  /** Resets the count. Resolves when the point is reached. */
  hold(point?: HoldPoint): Promise<void> {
    this.#point = point;
    this.#seen = [];
    this.#held = Promise.withResolvers();
    return this.#held.promise;
  }

  /** Breaks all connections, as if the server had crashed. New connections are accepted at once. */
  breakOff(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.breakOff();
    this.#server.close();
    await once(this.#server, "close");
  }

  #serve(client: Socket): void {
    const server = connect(this.#socketPath);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    const reader = new StatementReader();
    let isHeld = false;
    server.on("data", (bytes) => isHeld || client.write(bytes));
    client.on("data", (bytes) => {
      for (const statement of reader.read(bytes)) {
        if (isHeld) return;
        const verdict = this.#isCounted(statement) ? this.#count(statement.text) : undefined;
        isHeld = verdict !== undefined;
        if (verdict !== "before") server.write(statement.raw);
      }
    });
  }

  #isCounted({ raw, text, transaction }: Statement): boolean {
    const isMeant = this.#subject.test(raw.toString("latin1")) && !this.#except.test(text);
    if (isMeant && transaction) transaction.isMeant = true;
    return isMeant || (transaction?.isMeant ?? false);
  }

  #count(text: string): HoldPoint["when"] | undefined {
    this.#seen.push(text);
    const { statement, when, among = /^/ } = this.#point ?? {};
    if (!among.test(text) || this.#seen.filter((each) => among.test(each)).length !== statement) return undefined;
    this.#held.resolve();
    return when;
  }
}

/** Statement in the protocol. */
interface Statement {
  readonly raw: Buffer;
  /** SQL text, or the name of a prepared statement. */
  readonly text: string;
  /** Transaction that the statement belongs to or ends. */
  readonly transaction: { isMeant: boolean } | undefined;
}

/** Splits a client's messages into statements: all messages up to a Sync, or one simple query. */
class StatementReader {
  #transaction: Statement["transaction"];
  #rest = Buffer.alloc(0);
  #pending: Buffer[] = [];
  #text = "";
  #isStarted = false;

  *read(bytes: Buffer): Generator<Statement> {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      // The first message has no type.
      const head = this.#isStarted ? 1 : 0;
      if (this.#rest.length < head + 4) return;
      const length = head + this.#rest.readUInt32BE(head);
      if (this.#rest.length < length) return;
      const message = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      const type = this.#isStarted ? String.fromCharCode(message[0] ?? 0) : "startup";
      this.#isStarted = true;
      this.#pending.push(message);
      this.#text ||= textOf(type, message);
      if (["startup", "p", "Q", "S", "X"].includes(type)) yield this.#take();
    }
  }

  #take(): Statement {
    const text = this.#text;
    if (/^begin/i.test(text)) this.#transaction = { isMeant: false };
    const transaction = this.#transaction;
    if (/^(commit|rollback)/i.test(text)) this.#transaction = undefined;
    this.#text = "";
    return { raw: Buffer.concat(this.#pending.splice(0)), text, transaction };
  }
}

function textOf(type: string, message: Buffer): string {
  const [first = "", second = ""] = message.subarray(5).toString("utf8").split("\0");
  if (type === "Q") return first;
  // Parse: name, SQL. Bind: portal, name.
  return type === "P" || type === "B" ? second : "";
}
