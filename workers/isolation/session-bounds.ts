export interface SessionBounds {
  /**
   * Memory of all the session's processes. Shared pages count once, or once per process if the worker cannot read their
   * shares. Pages of files do not count.
   */
  readonly memoryBytes: number;
  /** Number of processes and threads. */
  readonly tasks: number;
  /** Disk usage of the browser's and the session's files. Browser files in /dev/shm also use memory. */
  readonly diskBytes: number;
}

/** A session that exceeds a bound is ended. */
export const sessionBounds: SessionBounds = { memoryBytes: 2 * 2 ** 30, tasks: 1_024, diskBytes: 2 ** 30 };

/**
 * Kernel limit on processes and threads of a slot's uid. The limit is above the session bound, so that usually the
 * watchdog ends the session and reports the reason. If tasks are created faster than the watchdog checks, their
 * creation fails at this limit.
 */
export const maxTasks = 2 * sessionBounds.tasks;
