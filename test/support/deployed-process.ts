import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { recordLog } from "./logs.ts";

const startMs = 60_000;
const stopMs = 45_000;

export interface DeployedProcessOptions {
  /** Checkout with the program; by default this one. */
  readonly root?: string | undefined;
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** Port with the readiness check. */
  readonly internalPort: number;
}

/** Gateway or worker in a separate process that can be restarted on the same data and ports. */
export class DeployedProcess {
  readonly #options: DeployedProcessOptions;
  #process: ChildProcess | undefined;
  #printed = "";

  constructor(options: DeployedProcessOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Exit code; null while the process runs and after a signal. */
  get exitCode(): number | null {
    return this.#process?.exitCode ?? null;
  }

  /** Output of all starts. */
  get output(): string {
    return this.#printed;
  }

  /** Starts the process. Resolves when it is ready. */
  async start(): Promise<void> {
    const { root, program, env } = this.#options;
    const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, CHROMIUM_PATH, HEADLESS_SHELL_PATH } = process.env;
    const inherited = { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, CHROMIUM_PATH, HEADLESS_SHELL_PATH, LOG_LEVEL: "info" };
    const child = spawn(process.execPath, [program], {
      cwd: root,
      env: { ...inherited, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (text: Buffer) => {
        this.#printed += text.toString();
        recordLog(text.toString());
      });
    }
    const isReady = await waitUntil(async () => this.#hasEnded || (await this.isReady()), {
      timeout: startMs,
      every: 50,
    });
    if (!isReady || this.#hasEnded) throw new Error(`${program} did not become ready:\n${this.#printed}`);
  }

  /** Returns whether the process reports that it is ready. */
  async isReady(): Promise<boolean> {
    const url = `http://127.0.0.1:${this.#options.internalPort}/readyz`;
    return fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  async metrics(): Promise<string> {
    const url = `http://127.0.0.1:${this.#options.internalPort}/metrics`;
    return (await fetch(url, { signal: AbortSignal.timeout(5_000) })).text();
  }

  /** Sends a signal, such as SIGSTOP. */
  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Kills the process with SIGKILL and waits for its exit. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Sends SIGTERM and waits for the exit. A process that does not exit is killed. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  get #hasEnded(): boolean {
    const child = this.#process;
    return child === undefined || child.exitCode !== null || child.signalCode !== null;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (child === undefined || this.#hasEnded) return;
    const ended = once(child, "exit");
    child.kill(signal);
    // A stopped process would not handle the signal.
    child.kill("SIGCONT");
    const deadline = setTimeout(() => child.kill("SIGKILL"), stopMs);
    await ended;
    clearTimeout(deadline);
  }
}
