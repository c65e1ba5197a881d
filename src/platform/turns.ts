/** Runs something when its turn comes. */
export type Turns = <T>(run: () => Promise<T>) => Promise<T>;

/** Makes turns: so many at once, the others in the order in which they came. */
export function createTurns(atOnce: number): Turns {
  const waiting: (() => void)[] = [];
  let free = atOnce;
  return async (run) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await run();
    } finally {
      // Whose turn comes takes the place of this one.
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}
