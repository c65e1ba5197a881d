/** Items shared by many followers. A listener costs a fraction of the memory of an iterator. */
export interface Broadcast<T> extends AsyncIterable<T> {
  /**
   * Calls the listener at once with the latest item, if there is one, then with each new item. Stops when the returned
   * function is called.
   */
  listen(listener: (item: T) => void): () => void;
}

/** Returns whether items are shared by all followers. */
export const isBroadcast = <T>(items: AsyncIterable<T>): items is Broadcast<T> => "listen" in items;
