import type { RepeatedTask } from "./repeated-job.ts";

/** Milliseconds between sweeps. */
const sweepEvery = 600_000;

/** Creates a task that deletes expired data every 10 minutes. */
export function sweepTask(run: () => Promise<void>, failureMessage: string): RepeatedTask {
  return { run, every: sweepEvery, failureMessage };
}

/** Deletes rows, in batches so that each statement is short. `deleteRows` returns how many rows it has deleted. */
export async function deleteInBatches(deleteRows: (limit: number) => Promise<number>): Promise<void> {
  const limit = 1_000;
  while ((await deleteRows(limit)) === limit);
}
