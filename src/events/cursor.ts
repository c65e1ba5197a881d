/**
 * A place in the order of events. Commit order is (xid, position), not position alone: a row with a lower position may
 * become visible after one with a higher, when its transaction is still open.
 */
export interface Cursor {
  readonly xid: bigint;
  readonly position: bigint;
}

/** Says whether one place comes after another. */
export function isAfter(a: Cursor, b: Cursor): boolean {
  return a.xid === b.xid ? a.position > b.position : a.xid > b.xid;
}
