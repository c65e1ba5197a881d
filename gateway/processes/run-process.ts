import type { Part } from "../../src/platform/lifetime.ts";
import { onStopSignals } from "./stop-signals.ts";

/**
 * Starts what a process is there for, then awaits `proven`, and stops it on SIGINT or SIGTERM; a later signal does not wait.
 * Gives whether it runs: false when it was told to stop meanwhile.
 */
export async function runProcess(running: Required<Part>, proven = async (): Promise<void> => {}): Promise<boolean> {
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    // The channel to a supervisor would keep a process going that has nothing left to do.
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
    const wasTold = stopping !== undefined;
    await stop();
    if (!wasTold) throw error;
  }
  return stopping === undefined;
}
