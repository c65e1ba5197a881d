import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

/** Part of a tool's result. */
interface Content {
  readonly type: string;
  readonly text?: string;
  readonly data?: string;
}

/** Client of the Model Context Protocol over the standard streams of a server's process. */
export class McpClient {
  readonly #server: ChildProcess;
  readonly #pending = new Map<number, (answer: { result?: { content?: Content[] }; error?: unknown }) => void>();
  #lastId = 0;

  private constructor(server: ChildProcess) {
    this.#server = server;
    if (!server.stdout) throw new Error("the server's output is not piped");
    createInterface({ input: server.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.#pending.get(message.id)?.(message);
    });
  }

  /** Initialises a connection to a server whose streams are piped. */
  static async connect(server: ChildProcess): Promise<McpClient> {
    const client = new McpClient(server);
    const clientInfo = { name: "test", version: "1" };
    await client.#ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    client.#write({ method: "notifications/initialized" });
    return client;
  }

  /** Calls a tool and returns its result. */
  async call(tool: string, args: object = {}): Promise<readonly Content[]> {
    const { result, error } = await this.#ask("tools/call", { name: tool, arguments: args });
    if (!result?.content) throw new Error(`${tool}: ${JSON.stringify(error)}`);
    return result.content;
  }

  /** Calls a tool and returns the text of its result. */
  async read(tool: string, args: object = {}): Promise<string> {
    return (await this.call(tool, args)).map(({ text = "" }) => text).join("\n");
  }

  #ask(method: string, params: object): Promise<{ result?: { content?: Content[] }; error?: unknown }> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      this.#pending.set(id, resolve);
      this.#write({ id, method, params });
    });
  }

  #write(message: object): void {
    this.#server.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }
}
