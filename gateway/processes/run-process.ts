import type { Lifetime } from "../../src/platform/lifetime.ts";
import type { Log } from "../../src/platform/log.ts";
import { processIdentity } from "../../src/platform/release.ts";
import { onStopSignals } from "./stop-signals.ts";

/** Identity of a process in its log. */
interface RunningProcess {
  readonly role: "supervisor" | "control" | "gateway";
  readonly log: Log;
}

/**
 * Starts `running`, awaits `proven`, and stops `running` on SIGINT or SIGTERM. A second signal ends the process at
 * once. Returns false if a signal arrived before the start was complete.
 */
export async function runProcess(
  { role, log }: RunningProcess,
  running: Lifetime,
  proven = async (): Promise<void> => {},
): Promise<boolean> {
  const identity = processIdentity(role);
  log.info({ ...identity, node: process.version }, "the process starts");
  let stopping: Promise<void> | undefined;
  async function stopInOrder(): Promise<void> {
    log.info(identity, "the process stops");
    try {
      await running.stop();
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
    await running.start();
    if (!stopping) await proven();
  } catch (error) {
    const wasAsked = stopping !== undefined;
    await stop();
    if (!wasAsked) throw error;
    // A connection that is still being opened would keep the process alive.
    process.exit();
  }
  return stopping === undefined;
}
