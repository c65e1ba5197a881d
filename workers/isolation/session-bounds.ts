/** What one session may take of its machine. */
export interface SessionBounds {
  /** Memory of all its processes, what they share counted once, files that back their code not at all. */
  readonly memoryBytes: number;
  /** Processes and threads. */
  readonly tasks: number;
  /** What its files take on disk, its browser's and its user's; the former may lie in memory, and take of that besides. */
  readonly diskBytes: number;
}

/** A session above one of these ends. */
export const sessionBounds: SessionBounds = { memoryBytes: 2 * 2 ** 30, tasks: 1_024, diskBytes: 2 ** 30 };

/**
 * Tasks that the kernel lets a slot's uid have: above the bound, so that a page that makes many is seen at the bound and
 * its session ends with that as its reason, and one that makes them faster than anybody looks fails at this.
 */
export const mostTasks = 2 * sessionBounds.tasks;
