import { SessionEndedReason } from "../src/gen/pilothouse/v1/session_pb.ts";
import { ConfigError } from "../src/platform/environment.ts";
import { keepRunning } from "../src/platform/last-resort.ts";
import { createLog } from "../src/platform/log.ts";
import { readWorkerConfig } from "./base/config.ts";
import { threadsFor } from "./egress/resolver.ts";
import type { WorkerFate } from "./fleet/fleet-link.ts";
import { startWorker, type Worker } from "./worker.ts";

/** How long a worker may take to end its sessions before it just ends; its supervisor waits 10 s. */
const stopMs = 9_000;

/** Exit statuses: 2 says that starting again will not help before something is changed. */
const exitFailed = 1;
const exitMisconfigured = 2;

async function main(): Promise<void> {
  const config = readWorkerConfig(process.env);
  const log = createLog(config.logLevel);
  keepRunning(log);
  // Node reads it when a thread is first needed, which is after this.
  process.env.UV_THREADPOOL_SIZE ??= String(threadsFor(config.slots));
  let worker: Worker | undefined;
  let starting: Promise<Worker> | undefined;
  let stopping: Promise<void> | undefined;
  const stop = (why: string, status: number, reason: SessionEndedReason = SessionEndedReason.DESTROYED): void => {
    if (stopping) return;
    log.info({ why }, "the worker ends");
    process.exitCode = status;
    setTimeout(() => process.exit(exitFailed), stopMs).unref();
    // Half a start would leave a slot's directories behind.
    stopping = Promise.resolve(starting)
      .then((started) => started?.stop(reason))
      .finally(() => process.exit());
  };
  const hurry = new AbortController();
  let draining: Promise<void> | undefined;
  const drain = (signal: NodeJS.Signals): void => {
    // A second signal does not wait for sessions.
    if (draining) hurry.abort();
    draining ??= (worker?.drain(config.drainSeconds * 1_000, hurry.signal) ?? Promise.resolve()).then(() =>
      stop(signal, 0),
    );
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => drain(signal));
  const onFate = (fate: WorkerFate): void => {
    // A worker of its own goes on trying; the embedded one belongs to a gateway, and no gateway wants it any more.
    if (fate === "superseded" || config.embedded) stop(fate, 0, SessionEndedReason.WORKER_LOST);
  };
  starting = startWorker({ config, env: process.env, log, onFate });
  worker = await starting;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof ConfigError ? exitMisconfigured : exitFailed);
});
