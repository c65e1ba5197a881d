// A harmful CDP client in its own process. Repeats one harmful action and notifies its parent each time. Arguments:
// name of the action, URL of a session.
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";

const mib = 2 ** 20;
const [kind = "", url = ""] = process.argv.slice(2);

/** Used members of command results. */
interface Result {
  readonly targetId: string;
  readonly sessionId: string;
  readonly targetInfos: readonly { readonly type: string; readonly targetId: string }[];
}

/** Sends commands and reads their responses. Keeps only awaited responses. */
class Connection {
  readonly socket: WebSocket;
  readonly #waiting = new Map<number, (result: Result) => void>();
  #lastId = 0;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    socket.on("message", (data: Buffer) => {
      const id = Number(/^\{"id":(\d+)/.exec(data.toString("latin1", 0, 24))?.[1]);
      // Casts the response to the type of its command. Long responses are not parsed.
      this.#waiting.get(id)?.(data.length > mib ? undefined : JSON.parse(String(data)).result);
      this.#waiting.delete(id);
    });
  }

  static async open(): Promise<Connection> {
    const socket = new WebSocket(url, { maxPayload: 200 * mib });
    const connection = new Connection(socket);
    await once(socket, "open");
    return connection;
  }

  /** Sends a command. Resolves when the socket has accepted it. */
  push(method: string, params: object, sessionId?: string): Promise<number> {
    this.#lastId += 1;
    const id = this.#lastId;
    const text = JSON.stringify({ id, method, params, sessionId });
    return new Promise((resolve) => this.socket.send(text, () => resolve(id)));
  }

  async ask(method: string, params: object = {}, sessionId?: string) {
    const answered = Promise.withResolvers<Result>();
    this.#waiting.set(this.#lastId + 1, answered.resolve);
    await this.push(method, params, sessionId);
    return answered.promise;
  }

  /** Attaches to the session's first page. */
  async attach(): Promise<string> {
    const { targetInfos } = await this.ask("Target.getTargets");
    const page = targetInfos.find(({ type }) => type === "page");
    const { sessionId } = await this.ask("Target.attachToTarget", { targetId: page?.targetId, flatten: true });
    return sessionId;
  }
}

/** Actions to repeat until the process ends. Each returns a function that runs it once. */
const kinds: Readonly<Record<string, () => Promise<() => Promise<unknown>>>> = {
  /** Sends as fast as possible, and reads all responses. */
  floods: async () => {
    const connection = await Connection.open();
    return async () => {
      for (let count = 0; count < 1_000; count += 1) await connection.push("Browser.getVersion", {});
    };
  },
  /** Makes the browser produce much output and reads nothing until disconnected, then reconnects. */
  "reads nothing": async () => async () => {
    const connection = await Connection.open();
    const page = await connection.attach();
    const closed = once(connection.socket, "close");
    connection.socket.pause();
    const params = { expression: `"x".repeat(${8 * mib})`, returnByValue: true };
    for (let count = 0; count < 8; count += 1) void connection.push("Runtime.evaluate", params, page);
    // A paused socket does not emit "close".
    setTimeout(() => connection.socket.terminate(), 1_500);
    await closed;
  },
  /** Pauses each new page and never resumes it. */
  "pauses pages": async () => {
    const sleeper = await Connection.open();
    await sleeper.push("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: true, flatten: true });
    const opener = await Connection.open();
    return async () => {
      const { targetId } = await opener.ask("Target.createTarget", { url: "about:blank" });
      await delay(200);
      await opener.ask("Target.closeTarget", { targetId });
    };
  },
  /** Sends a message of 90 MiB and receives it back. */
  "sends 90 MiB": async () => {
    const connection = await Connection.open();
    const page = await connection.attach();
    const params = { expression: `"${"x".repeat(90 * mib)}"`, returnByValue: true };
    return () => connection.ask("Runtime.evaluate", params, page);
  },
};

const begin = kinds[kind];
if (!begin) throw new Error(`there is no client that ${kind}`);
for (const again = await begin(); ; ) {
  await again();
  process.send?.("done");
}
