import { SessionEndedReason } from "../src/gen/pilothouse/v1/session_pb.ts";
import { ConfigError } from "../src/platform/environment.ts";
import { keepRunning } from "../src/platform/last-resort.ts";
import { createLog } from "../src/platform/log.ts";
import { processIdentity } from "../src/platform/release.ts";
import { readWorkerConfig } from "./base/config.ts";
import { threadsFor } from "./egress/resolver.ts";
import type { WorkerStopReason } from "./fleet/fleet-link.ts";
import { startWorker, type Worker } from "./worker.ts";

/** Maximum milliseconds for ending sessions. The process exits after that. The supervisor waits 10 s. */
const stopMs = 9_000;

/** Exit statuses. After status 2, a restart fails until the configuration has changed. */
const exitFailed = 1;
const exitMisconfigured = 2;

async function main(): Promise<void> {
  const config = readWorkerConfig(process.env);
  const log = createLog(config.logLevel);
  keepRunning(log);
  // Node reads UV_THREADPOOL_SIZE when it first needs a thread, which is after this line.
  process.env.UV_THREADPOOL_SIZE ??= String(threadsFor(config.slots));
  let worker: Worker | undefined;
  let starting: Promise<Worker> | undefined;
  let stopping: Promise<void> | undefined;
  const stop = (why: string, status: number, reason: SessionEndedReason = SessionEndedReason.WORKER_DRAINED): void => {
    if (stopping) return;
    log.info({ ...processIdentity("worker"), why }, "the worker ends");
    process.exitCode = status;
    setTimeout(() => process.exit(exitFailed), stopMs).unref();
    // Waits until the worker has started: stopping a partial start would leave directories of isolation slots behind.
    stopping = Promise.resolve(starting)
      .then((started) => started?.stop(reason))
      .finally(() => process.exit());
  };
  const drainAbort = new AbortController();
  let isDraining = false;
  const drain = async (why: NodeJS.Signals | WorkerStopReason): Promise<void> => {
    if (isDraining) return;
    isDraining = true;
    log.info({ ...processIdentity("worker"), why, drain_seconds: config.drainSeconds }, "the worker drains");
    await worker?.drain(config.drainSeconds * 1_000, drainAbort.signal);
    stop(why, 0);
  };
  let signalled = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    // A second signal aborts the drain. A first signal does not, even if the operator has requested the drain before.
    if (signalled) drainAbort.abort();
    signalled = true;
    void drain(signal);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => onSignal(signal));
  const onStopRequired = (stopReason: WorkerStopReason): void => {
    if (stopReason === "drain requested") return void drain(stopReason);
    // After a lost lease, a standalone worker registers again. An embedded worker is not needed without its control
    // process.
    if (stopReason === "superseded" || config.embedded) stop(stopReason, 0, SessionEndedReason.WORKER_LOST);
  };
  starting = startWorker({ config, env: process.env, log, onStopRequired });
  worker = await starting;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof ConfigError ? exitMisconfigured : exitFailed);
});
