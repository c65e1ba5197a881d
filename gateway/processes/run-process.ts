import type { Part } from "../../src/platform/lifetime.ts";
import type { Log } from "../../src/platform/log.ts";
import { releaseVersion } from "../../src/platform/release.ts";
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
  running: Required<Part>,
  proven = async (): Promise<void> => {},
): Promise<boolean> {
  log.info({ role, release: releaseVersion, node: process.version }, "the process starts");
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    // An open channel to the supervisor would keep the process alive.
    stopping ??= Promise.resolve(running.stop()).finally(() => process.channel?.unref());
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
  }
  return stopping === undefined;
}
