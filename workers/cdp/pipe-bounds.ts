const mib = 2 ** 20;

/** Bounds of what one browser may write, and of what all browsers of a worker together may have it hold. */
export const pipeBounds = {
  /** Of the answer to a command. A longer one is skipped, and the command fails. */
  answerBytes: 128 * mib,
  /**
   * Of an event: nothing that is wanted of one is so long, and a page makes events of any length (a line of its console).
   * Reading 8 MiB holds the worker for some 50 ms. A longer one is skipped, and counted.
   */
  eventBytes: 8 * mib,
  /** A message that is longer counts among the large ones, which all browsers of the worker share. */
  largeBytes: mib,
  allLargeBytes: 256 * mib,
  /** What a browser may write in a second, and at once; then it waits. */
  bytesPerSecond: 32 * mib,
  messagesPerSecond: 3_000,
};

/** What is counted of the pipes of all browsers of this process. */
export const pipeTotals = {
  /** Bytes of large messages that are held at this moment. */
  largeBytes: 0,
  /** Messages that were skipped. */
  skipped: 0,
  /** How often a browser had to wait. */
  waits: 0,
};
