const mib = 2 ** 20;

/** Bounds per browser, and for all browsers of a worker together. */
export const pipeBounds = {
  /** Longest answer. A longer one is skipped and its command fails. */
  answerBytes: 128 * mib,
  /**
   * Longest event. No event that we need is longer, and pages control the length (console lines). Reading 8 MiB blocks
   * the worker for about 50 ms. Longer events are skipped and counted.
   */
  eventBytes: 8 * mib,
  /** Longer messages count as large. All browsers of the worker share the memory for large messages. */
  largeBytes: mib,
  allLargeBytes: 256 * mib,
  /** Rates per second, and bursts of the same size. A browser above them is paused. */
  bytesPerSecond: 32 * mib,
  messagesPerSecond: 3_000,
};

/** Counters over the pipes of all browsers of this process. */
export const pipeTotals = {
  /** Bytes of large messages currently held. */
  largeBytes: 0,
  /** Messages skipped. */
  skipped: 0,
  /** Times that a browser was paused. */
  waits: 0,
};
