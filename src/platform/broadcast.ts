/**
 * What many follow at once, who are all given the same items. To hear them costs a fraction of the memory of an iteration
 * of one's own.
 */
export interface Broadcast<T> extends AsyncIterable<T> {
  /** Has the latest item heard at once and each that comes, until what it gives is called. */
  listen(hear: (item: T) => void): () => void;
}

/** Says whether items are the same for all who follow them. */
export const isBroadcast = <T>(items: AsyncIterable<T>): items is Broadcast<T> => "listen" in items;
