/** Notifies listeners of values, by key. */
export interface Listeners<T> {
  /** Calls the listener with each value for the key, until the returned function is called. */
  add(key: string, listener: (value: T) => void): () => void;
  notify(key: string, value: T): void;
}

export function createListeners<T>(): Listeners<T> {
  const byKey = new Map<string, Set<(value: T) => void>>();
  return {
    add(key, listener) {
      const set = byKey.get(key) ?? new Set();
      byKey.set(key, set.add(listener));
      return () => {
        set.delete(listener);
        if (set.size === 0 && byKey.get(key) === set) byKey.delete(key);
      };
    },
    notify(key, value) {
      for (const listener of [...(byKey.get(key) ?? [])]) listener(value);
    },
  };
}
