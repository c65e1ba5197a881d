const mib = 2 ** 20;

/**
 * File limits per session: bytes of one file, bytes of all files, and number of files. `sessionBytes` leaves room for
 * the browser's own files within the slot's disk bound.
 */
export const fileBounds = {
  fileBytes: 100 * mib,
  sessionBytes: 768 * mib,
  files: 1_000,
};

/** A write in progress. Its bytes count towards the limits. */
export interface PendingWrite {
  bytes: number;
}

/** Formats a size in bytes as MiB. */
export function inMebibytes(bytes: number): string {
  return `${bytes / mib} MiB`;
}
