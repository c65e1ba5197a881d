/** Maximum number of ids per query. */
const longestBatch = 200;

interface Waiting<Value> {
  readonly id: string;
  readonly answer: PromiseWithResolvers<Value | undefined>;
}

/**
 * Creates a loader that runs one query at a time, so that a flood of unknown bearers occupies only one database
 * connection per loader. Ids requested during a query share the next query.
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
