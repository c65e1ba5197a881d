import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { freePorts } from "./free-port.ts";
import { builtLiveKit } from "./livekit-build.ts";

const startMs = 15_000;

/** LiveKit server on new loopback ports, without persistence. */
export class LiveKitServer implements AsyncDisposable {
  readonly url: string;
  readonly key = "key-of-the-tests";
  readonly secret = "a secret of the tests, as long as LiveKit wants one";
  /** Port for media over TCP. */
  readonly tcpPort: number;
  readonly #port: number;
  readonly #program: string;
  #process: ChildProcess | undefined;

  private constructor(program: string, port: number, tcpPort: number) {
    this.#program = program;
    this.#port = port;
    this.tcpPort = tcpPort;
    this.url = `ws://127.0.0.1:${port}`;
  }

  /** Starts a server, which is built if needed. */
  static async start(): Promise<LiveKitServer> {
    const { HTTP, TCP } = await freePorts("HTTP", "TCP");
    const server = new LiveKitServer(await builtLiveKit(), HTTP, TCP);
    await server.restart();
    return server;
  }

  /** Environment variables for a gateway and its worker. */
  get env(): Record<string, string> {
    return { LIVEKIT_URL: this.url, LIVEKIT_API_KEY: this.key, LIVEKIT_API_SECRET: this.secret };
  }

  /** Restarts the server on the same ports without its former state. */
  async restart(): Promise<void> {
    const config = {
      port: this.#port,
      bind_addresses: ["127.0.0.1"],
      rtc: {
        tcp_port: this.tcpPort,
        port_range_start: 50_000,
        port_range_end: 60_000,
        node_ip: "127.0.0.1",
        use_external_ip: false,
        interfaces: { includes: ["lo"] },
        enable_loopback_candidate: true,
      },
      keys: { [this.key]: this.secret },
      logging: { level: "error" },
    };
    // JSON is YAML.
    this.#process = spawn(this.#program, ["--config-body", JSON.stringify(config)], { stdio: "ignore" });
    const answers = () =>
      fetch(`http://127.0.0.1:${this.#port}/`).then(
        ({ ok }) => ok,
        () => false,
      );
    if (!(await waitUntil(answers, { timeout: startMs, every: 20 }))) throw new Error("LiveKit did not start");
  }

  /** Kills the server with SIGKILL. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
