const mib = 2 ** 20;

/** Bounds per browser, and for all browsers of a worker together. */
export const pipeBounds = {
  /** Longest answer. A longer answer is skipped and its command fails. */
  answerBytes: 128 * mib,
  /**
   * Lower limits for answers of page-controlled length, by command. Parsing 2 MiB blocks the worker for about 15 ms.
   */
  answersBytes: { "DOMDebugger.getEventListeners": 2 * mib } as Readonly<Record<string, number>>,
  /**
   * Longest event. No event that we need is longer, and pages control the length (console lines). Reading 8 MiB blocks
   * the worker for about 50 ms. Longer events are skipped and counted.
   */
  eventBytes: 8 * mib,
  /** Messages above this size count as large. */
  largeBytes: mib,
  /** Memory in bytes for large messages, shared by all browsers and CDP clients of the worker. */
  allLargeBytes: 256 * mib,
  /** Limits of a browser's output: average per second, and size of a burst. A browser above a limit is paused. */
  bytesPerSecond: 32 * mib,
  messagesPerSecond: 3_000,
};

/** Counters over the pipes of all browsers of this process. */
export const pipeTotals = {
  /** Bytes currently reserved for large messages, including messages from CDP clients. */
  largeBytes: 0,
  /** Messages skipped because they were too long or no memory for large messages was left. */
  skipped: 0,
  /** Number of times that a browser was paused. */
  waits: 0,
};
