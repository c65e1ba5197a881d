/** How many are asked for at once. */
const longestBatch = 200;

interface Waiting<Value> {
  readonly id: string;
  readonly answer: PromiseWithResolvers<Value | undefined>;
}

/**
 * Makes a loader that has one query under way at a time: whoever asks meanwhile is in the next one. So bearers that
 * nobody has can be shown at any rate, and cost PostgreSQL one connection, and everybody else a query's time.
 */
export function createBatchLoader<Value>(
  find: (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
): (id: string) => Promise<Value | undefined> {
  const waiting: Waiting<Value>[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, longestBatch);
      try {
        const found = await find(batch.map(({ id }) => id));
        for (const { id, answer } of batch) answer.resolve(found.get(id));
      } catch (error) {
        for (const { answer } of batch) answer.reject(error);
      }
    }
    isRunning = false;
  }

  return (id) => {
    const answer = Promise.withResolvers<Value | undefined>();
    waiting.push({ id, answer });
    if (!isRunning) void run();
    return answer.promise;
  };
}
