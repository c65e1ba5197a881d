export interface SessionBounds {
  /** Memory of all processes. Shared pages count once; file-backed code does not count. */
  readonly memoryBytes: number;
  /** Processes and threads. */
  readonly tasks: number;
  /** Disk usage of the browser's and the user's files. Browser files in /dev/shm also use memory. */
  readonly diskBytes: number;
}

/** A session that exceeds a bound is ended. */
export const sessionBounds: SessionBounds = { memoryBytes: 2 * 2 ** 30, tasks: 1_024, diskBytes: 2 ** 30 };

/**
 * Kernel limit on tasks per slot uid. Above the session bound, so that the watchdog usually ends the session with a
 * reason. Tasks created faster than the watchdog checks fail at this limit.
 */
export const maxTasks = 2 * sessionBounds.tasks;
