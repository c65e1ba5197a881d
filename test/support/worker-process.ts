import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { App } from "../../src/app/app.ts";
import { recordLog } from "./logs.ts";

/** Milliseconds until a terminated worker has exited. Its own limit is 9 s. */
const endsWithin = 15_000;

/** Worker in a separate process. */
export interface WorkerProcess extends AsyncDisposable {
  readonly pid: number;
  /** Returns the output so far. */
  output(): string;
  signal(signal: NodeJS.Signals): void;
  /** Resolves to the exit status, or to the signal that ended the process. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Starts the real worker for an embedded app without one. The worker first joins the control group `cgroup`. */
export function startWorkerProcess(app: App, env: Record<string, string> = {}, cgroup?: string): WorkerProcess {
  const { dataDir, workerToken = "" } = app.config;
  const socket = `unix:${join(dataDir, "test-worker.sock")}`;
  const program = [process.execPath, "workers/main.ts"];
  const joined = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup ?? "", ...program];
  const [command = "", ...parameters] = cgroup === undefined ? program : joined;
  const child = spawn(command, parameters, {
    env: {
      ...process.env,
      DATA_DIR: dataDir,
      CONTROL: `unix:${join(dataDir, "fleet.sock")}`,
      WORKER_LISTEN: socket,
      WORKER_ADDRESS: socket,
      WORKER_TOKEN: workerToken,
      WORKER_SLOTS: "4",
      LOG_LEVEL: "info",
      CLOSE_AT_CPU: "100",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text: Buffer) => {
      printed += text.toString();
      recordLog(text.toString());
    });
  }
  const ended = endOf(child);
  return {
    pid: child.pid ?? 0,
    output: () => printed,
    signal: (signal) => void child.kill(signal),
    ended,
    async [Symbol.asyncDispose]() {
      for (const signal of ["SIGTERM", "SIGINT"] as const) child.kill(signal);
      const timer = setTimeout(() => child.kill("SIGKILL"), endsWithin);
      await ended;
      clearTimeout(timer);
    },
  };
}

async function endOf(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  await once(child, "exit");
  return child.exitCode ?? child.signalCode;
}
