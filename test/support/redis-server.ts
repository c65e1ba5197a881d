import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { freePorts } from "./free-port.ts";

const startMs = 15_000;

/** Redis on a new loopback port, without persistence. */
export class RedisServer {
  readonly url: string;
  readonly #port: number;
  readonly #directory: string;
  readonly #options: readonly string[];
  #process: ChildProcess | undefined;

  private constructor(port: number, directory: string, options: readonly string[]) {
    this.#port = port;
    this.#options = options;
    this.#directory = directory;
    this.url = `redis://127.0.0.1:${port}`;
  }

  /** Starts a server with additional options of its command. */
  static async start(...options: readonly string[]): Promise<RedisServer> {
    const { REDIS } = await freePorts("REDIS");
    const server = new RedisServer(REDIS, await mkdtemp(join(tmpdir(), "redis-")), options);
    await server.restart();
    return server;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Restarts the server on the same port without its former data. */
  async restart(): Promise<void> {
    const common = ["--port", String(this.#port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    const options = [...common, "--dir", this.#directory, ...this.#options];
    this.#process = spawn("redis-server", options, { stdio: "ignore" });
    const answers = await waitUntil(() => this.#answers(), { timeout: startMs, every: 10 });
    if (!answers) throw new Error("redis-server did not start");
  }

  /** Kills the server with SIGKILL. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** Stops the server, which then accepts connections without replying. */
  hang(): void {
    this.#process?.kill("SIGSTOP");
  }

  resume(): void {
    this.#process?.kill("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #answers(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(this.#port, "127.0.0.1", () => socket.write("PING\r\n"));
      socket.setTimeout(1_000, () => socket.destroy());
      socket.once("data", (answer) => {
        socket.destroy();
        resolve(answer.toString().startsWith("+PONG"));
      });
      socket.once("error", () => resolve(false));
      socket.once("close", () => resolve(false));
    });
  }
}
