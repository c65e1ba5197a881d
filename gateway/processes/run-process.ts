import type { Lifetime } from "../../src/platform/lifetime.ts";
import type { Log } from "../../src/platform/log.ts";
import { processIdentity } from "../../src/platform/release.ts";
import { onStopSignals } from "./stop-signals.ts";

/** Role of a process, and its log. */
interface RunningProcess {
  readonly role: "supervisor" | "control" | "gateway";
  readonly log: Log;
}

/**
 * Starts `lifetime`, awaits `untilReady`, and stops `lifetime` on SIGINT or SIGTERM. A signal more than 2 s after the
 * first ends the process at once. If the start fails, stops `lifetime` and throws. Returns false if a signal arrived
 * before the start was complete.
 */
export async function runProcess(
  { role, log }: RunningProcess,
  lifetime: Lifetime,
  untilReady = async (): Promise<void> => {},
): Promise<boolean> {
  const identity = processIdentity(role);
  log.info({ ...identity, node: process.version }, "the process starts");
  let stopping: Promise<void> | undefined;
  async function stopInOrder(): Promise<void> {
    log.info(identity, "the process stops");
    try {
      await lifetime.stop();
      log.info(identity, "the process has stopped");
    } finally {
      // An open channel to the supervisor would keep the process alive.
      process.channel?.unref();
    }
  }
  const stop = (): Promise<void> => {
    stopping ??= stopInOrder();
    return stopping;
  };
  onStopSignals(
    process,
    () => void stop(),
    () => process.exit(130),
  );
  try {
    await lifetime.start();
    if (!stopping) await untilReady();
  } catch (error) {
    const wasStopping = stopping !== undefined;
    await stop();
    if (!wasStopping) throw error;
    // A connection that is still being opened would keep the process alive.
    process.exit();
  }
  return stopping === undefined;
}
