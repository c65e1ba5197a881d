import type { Clock } from "./clock.ts";
import { unlessLate } from "./deadline.ts";

/** How a cache of answers that may change elsewhere loads and keeps them. */
export interface FreshCacheOptions<V> {
  /** Reads the truth; undefined (no such thing) is never kept. */
  load(key: string): Promise<V | undefined>;
  /** Says whether the truth cannot be read at all at the moment. */
  isAway(error: unknown): boolean;
  /** Milliseconds that an answer is good for. */
  freshFor: number;
  /** Milliseconds that an answer is good for while the truth cannot be read. */
  staleFor: number;
  /** Milliseconds that an answer is waited for while an old one would do: the truth may hang rather than fail. */
  patience: number;
  /** How many answers are kept; the least recently used go first. */
  capacity: number;
  readonly clock: Pick<Clock, "monotonic">;
}

/** A bounded cache of answers that are loaded once for all who ask at the same time. */
export interface FreshCache<V> {
  get(key: string): Promise<V | undefined>;
  /** Reads without loading; undefined when nothing is kept that is good at the moment. */
  peek(key: string): V | undefined;
  /** Has an answer loaded anew at its next reading; it is still good while the truth cannot be read. */
  expire(key: string): void;
  /** Forgets an answer, and one that is being loaded right now as well. */
  forget(key: string): void;
  /** Forgets the answers that are meant, and all that are being loaded right now: they may be among them. */
  forgetIf(isMeant: (key: string, value: V) => boolean): void;
}

interface Kept<V> {
  readonly value: V;
  readonly loadedAt: number;
}

/** Makes a cache. */
export function createFreshCache<V>(options: FreshCacheOptions<V>): FreshCache<V> {
  const { freshFor, staleFor, capacity, patience } = options;
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

  /** Loads without keeping what was forgotten meanwhile: its load is then no longer the one that is registered. */
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
        if (old && options.isAway(error) && now() - old.loadedAt < staleFor) return old.value;
        throw error;
      },
    );
    loading.set(key, loaded);
    return loaded;
  }

  /** Waits for what is loaded; not for long where an old answer is good while the truth is away. */
  function loaded(key: string, loading: Promise<V | undefined>): Promise<V | undefined> {
    const old = younger(key, staleFor);
    return old === undefined ? loading : unlessLate(loading, patience, () => old);
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
    expire(key) {
      const old = kept.get(key);
      if (old) kept.set(key, { ...old, loadedAt: Math.min(old.loadedAt, now() - freshFor) });
      loading.delete(key);
    },
    forget(key) {
      kept.delete(key);
      loading.delete(key);
    },
    forgetIf(isMeant) {
      for (const [key, { value }] of kept) if (isMeant(key, value)) kept.delete(key);
      loading.clear();
    },
  };
}
