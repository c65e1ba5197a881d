import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Where a request is to be held: before one of its statements, or when that was carried out and is not yet answered. */
export interface HoldPoint {
  /** Starts at 1. */
  readonly statement: number;
  readonly when: "before" | "after";
  /** Only statements with such a text count; all without it. */
  readonly among?: RegExp;
}

/**
 * Stands before a PostgreSQL and holds one client at a chosen statement. Only statements about a subject count: those whose
 * parameters match it, with those that follow in their transaction.
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

  /** Listens on loopback, before the server of a socket. */
  static async start(socketPath: string, subject: RegExp, except: RegExp): Promise<StatementProxy> {
    const proxy = new StatementProxy(socketPath, subject, except);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** What was counted since the last hold was set. */
  get seen(): readonly string[] {
    return this.#seen;
  }

  /** Counts anew; resolves when the point is reached. */
  hold(point?: HoldPoint): Promise<void> {
    this.#point = point;
    this.#seen = [];
    this.#held = Promise.withResolvers();
    return this.#held.promise;
  }

  /** Breaks all connections, as a server does that goes away. New ones are taken at once. */
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

/** One statement as it goes over the wire. */
interface Statement {
  readonly raw: Buffer;
  /** Its SQL, or the name of a prepared one. */
  readonly text: string;
  /** The transaction that it belongs to, or ends. */
  readonly transaction: { isMeant: boolean } | undefined;
}

/** Cuts what a client sends into statements: all messages up to a Sync, or one simple query. */
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
