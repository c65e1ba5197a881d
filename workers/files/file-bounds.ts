const mib = 2 ** 20;

/** Bounds of the files of one session: below that of its slot's disk, beside what the browser itself keeps there. */
export const fileBounds = {
  fileBytes: 100 * mib,
  sessionBytes: 768 * mib,
  files: 1_000,
};

/** What is being written at this moment, and takes room already. */
export interface Coming {
  bytes: number;
}

/** Writes a size for people. */
export function inMebibytes(bytes: number): string {
  return `${bytes / mib} MiB`;
}
