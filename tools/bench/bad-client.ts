// A CDP client that is a burden, in a process of its own: does one bad thing again and again, and tells its parent of each
// time that it has. Its arguments are the thing's name and the address of a session.
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";

const mib = 2 ** 20;
const [kind = "", url = ""] = process.argv.slice(2);

/** What is looked at of the results of commands. */
interface Result {
  readonly targetId: string;
  readonly sessionId: string;
  readonly targetInfos: readonly { readonly type: string; readonly targetId: string }[];
}

/** Sends commands and reads their answers, keeping none but those that are waited for. */
class Connection {
  readonly socket: WebSocket;
  readonly #waiting = new Map<number, (result: Result) => void>();
  #lastId = 0;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    socket.on("message", (data: Buffer) => {
      const id = Number(/^\{"id":(\d+)/.exec(data.toString("latin1", 0, 24))?.[1]);
      // The boundary where an answer is taken for what its command gives; a long one is not looked into.
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

  /** Sends a command; resolves when it is in the socket's hands. */
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

/** What is done again and again until the process ends; each gives what is done once. */
const kinds: Readonly<Record<string, () => Promise<() => Promise<unknown>>>> = {
  /** Sends as fast as it may, and reads all answers. */
  floods: async () => {
    const connection = await Connection.open();
    return async () => {
      for (let count = 0; count < 1_000; count += 1) await connection.push("Browser.getVersion", {});
    };
  },
  /** Has the browser say much, and reads nothing until it is given up; then comes back. */
  "reads nothing": async () => async () => {
    const connection = await Connection.open();
    const page = await connection.attach();
    const closed = once(connection.socket, "close");
    connection.socket.pause();
    const params = { expression: `"x".repeat(${8 * mib})`, returnByValue: true };
    for (let count = 0; count < 8; count += 1) void connection.push("Runtime.evaluate", params, page);
    // A socket that is not read does not tell that it was closed.
    setTimeout(() => connection.socket.terminate(), 1_500);
    await closed;
  },
  /** Has every new page paused, and lets none run. */
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
  /** Sends 90 MiB in one message, and has them sent back. */
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
