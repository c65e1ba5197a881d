import type { Clock } from "./clock.ts";
import { unlessLate } from "./deadline.ts";

/** Options of a cache for values that other processes may change. */
export interface FreshCacheOptions<V> {
  /** Loads a value. Undefined (not found) is not cached. */
  load(key: string): Promise<V | undefined>;
  /** Returns whether the source is unavailable. */
  isUnavailable(error: unknown): boolean;
  /** Milliseconds after its load for which a value is returned without a new load. */
  freshFor: number;
  /**
   * Milliseconds after its load for which a value may be returned if a new load is slow or the source is unavailable.
   */
  staleFor: number;
  /** Maximum milliseconds to wait for a load if an old value may be returned instead. */
  maxWait: number;
  /** Maximum number of values. The least recently used is evicted. */
  capacity: number;
  readonly clock: Pick<Clock, "monotonic">;
}

/** A bounded cache. Concurrent requests for a key share one load. */
export interface FreshCache<V> {
  get(key: string): Promise<V | undefined>;
  /** Returns a fresh value without loading, or undefined. */
  peek(key: string): V | undefined;
  /**
   * Makes the next read reload a value. The old value is still returned if that load is slow or the source is
   * unavailable.
   */
  expire(key: string): void;
  /** Loads a value again, however slow the load is. Returns the old value only if the source is unavailable. */
  reload(key: string): Promise<V | undefined>;
  /** Removes a value. The result of a running load is not stored. */
  forget(key: string): void;
  /** Removes a value. Loads the value again at once if it was fresh or being loaded. */
  renew(key: string): void;
  /** Removes matching values. Results of running loads are not stored, because they may match. */
  forgetIf(matches: (key: string, value: V) => boolean): void;
}

interface Kept<V> {
  readonly value: V;
  readonly loadedAt: number;
}

export function createFreshCache<V>(options: FreshCacheOptions<V>): FreshCache<V> {
  const { freshFor, staleFor, capacity, maxWait } = options;
  const now = (): number => options.clock.monotonic();
  const kept = new Map<string, Kept<V>>();
  const loading = new Map<string, Promise<V | undefined>>();

  function keep(key: string, value: V, loadedAt: number): void {
    kept.delete(key);
    kept.set(key, { value, loadedAt });
    if (kept.size > capacity) {
      const [oldest] = kept.keys();
      if (oldest !== undefined) kept.delete(oldest);
    }
  }

  function younger(key: string, age: number): V | undefined {
    const found = kept.get(key);
    return found && now() - found.loadedAt < age ? found.value : undefined;
  }

  function expire(key: string): void {
    const old = kept.get(key);
    if (old) kept.set(key, { ...old, loadedAt: Math.min(old.loadedAt, now() - freshFor) });
    loading.delete(key);
  }

  function forget(key: string): void {
    kept.delete(key);
    loading.delete(key);
  }

  /** Loads a value. Does not store the value if the key was expired or forgotten during the load. */
  function load(key: string): Promise<V | undefined> {
    const began = now();
    const loaded = options.load(key).then(
      (value) => {
        if (loading.get(key) === loaded) {
          loading.delete(key);
          if (value === undefined) kept.delete(key);
          else keep(key, value, began);
        }
        return value;
      },
      (error: unknown) => {
        if (loading.get(key) === loaded) loading.delete(key);
        const old = kept.get(key);
        if (old && options.isUnavailable(error) && now() - old.loadedAt < staleFor) return old.value;
        throw error;
      },
    );
    loading.set(key, loaded);
    return loaded;
  }

  /** Waits for a load. If a stale value exists, waits for at most `maxWait`. */
  function loaded(key: string, loading: Promise<V | undefined>): Promise<V | undefined> {
    const old = younger(key, staleFor);
    return old === undefined ? loading : unlessLate(loading, maxWait, () => old);
  }

  return {
    async get(key) {
      const found = kept.get(key);
      if (found && now() - found.loadedAt < freshFor) {
        kept.delete(key);
        kept.set(key, found);
        return found.value;
      }
      return loaded(key, loading.get(key) ?? load(key));
    },
    peek: (key) => younger(key, freshFor),
    expire,
    reload(key) {
      expire(key);
      return load(key);
    },
    forget,
    renew(key) {
      const isInUse = younger(key, freshFor) !== undefined || loading.has(key);
      forget(key);
      // A failed load is repeated by the next read.
      if (isInUse) load(key).catch(() => undefined);
    },
    forgetIf(matches) {
      for (const [key, { value }] of kept) if (matches(key, value)) kept.delete(key);
      loading.clear();
    },
  };
}
