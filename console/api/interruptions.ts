/** Something that a person must do before a request can succeed. */
export type InterruptionKind = "step-up" | "terms";

/** An open interruption. All requests that need it wait for the same one. */
export interface Interruption {
  readonly kind: InterruptionKind;
  readonly revisionId: string;
  readonly url: string;
  readonly done: Promise<boolean>;
  /** Ends the interruption. With `false` the requests fail as they did. */
  finish(isDone: boolean): void;
}

const listeners = new Set<() => void>();
let current: Interruption | undefined;
let limitedUntil = 0;

function announce(): void {
  for (const listener of listeners) listener();
}

/** Open interruption and rate limit, for `useSyncExternalStore`. */
export const interruptionStore = {
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  current: (): Interruption | undefined => current,
  /** Unix time in milliseconds until which requests wait for a rate limit; 0 if none waits. */
  limitedUntil: (): number => limitedUntil,
};

/** Asks the person, and resolves with whether the request can be sent again. */
export function interrupt(kind: InterruptionKind, extensions: Readonly<Record<string, string>>): Promise<boolean> {
  if (current?.kind === kind) return current.done;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  current = {
    kind,
    revisionId: extensions.revision_id ?? "",
    url: extensions.url ?? "",
    done: promise,
    finish(isDone) {
      current = undefined;
      announce();
      resolve(isDone);
    },
  };
  announce();
  return promise;
}

/** Waits until a rate limit has passed. The shell shows the remaining seconds. */
export async function waitForLimit(seconds: number): Promise<void> {
  limitedUntil = Math.max(limitedUntil, Date.now() + seconds * 1_000);
  announce();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  if (Date.now() < limitedUntil) return;
  limitedUntil = 0;
  announce();
}
