import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { recordLog } from "./logs.ts";

const startMs = 60_000;
const stopMs = 45_000;

/** What a process of a deployment is. */
export interface DeployedProcessOptions {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where it says that it is ready. */
  readonly internalPort: number;
}

/** A gateway or a worker that runs as a process of its own, and can be started again on the same data and ports. */
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

  /** How it ended; null while it runs, and after a signal. */
  get exitCode(): number | null {
    return this.#process?.exitCode ?? null;
  }

  /** Everything that it has printed since it was first started. */
  get output(): string {
    return this.#printed;
  }

  /** Starts it; resolves when it is ready. */
  async start(): Promise<void> {
    const { program, env } = this.#options;
    const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, CHROMIUM_PATH, HEADLESS_SHELL_PATH } = process.env;
    const inherited = { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, CHROMIUM_PATH, HEADLESS_SHELL_PATH, LOG_LEVEL: "info" };
    const child = spawn(process.execPath, [program], {
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

  /** Says whether it answers that it is ready. */
  async isReady(): Promise<boolean> {
    const url = `http://127.0.0.1:${this.#options.internalPort}/readyz`;
    return fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  /** Reads its metrics. */
  async metrics(): Promise<string> {
    const url = `http://127.0.0.1:${this.#options.internalPort}/metrics`;
    return (await fetch(url, { signal: AbortSignal.timeout(5_000) })).text();
  }

  /** Sends a signal, such as SIGSTOP. */
  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Ends it the hard way, and resolves when it is gone. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Tells it to end, and resolves when it has; one that does not is killed. */
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
    // One that a test has stopped could not heed it.
    child.kill("SIGCONT");
    const deadline = setTimeout(() => child.kill("SIGKILL"), stopMs);
    await ended;
    clearTimeout(deadline);
  }
}
