import { get } from "node:http";
import { sleep } from "../../../../src/platform/bounded-wait.ts";
import type { LoadRun } from "./run.ts";

const perSecond = 40;
/** Milliseconds before a request is repeated, as clients of the service wait. */
const repeatAfter = 500;

/** Sends a request over a connection of its own. Rejects if the status is not 200. */
function connectOnce({ url, key }: LoadRun): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const request = get(`${url}/v1/sessions?limit=1`, {
    agent: false,
    headers: { authorization: `Bearer ${key}` },
    timeout: 10_000,
  });
  request.on("response", (response) => {
    if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
    response.on("error", reject).resume().once("end", resolve);
  });
  request.on("timeout", () => request.destroy(new Error("no answer for 10 s")));
  request.on("error", reject);
  return promise;
}

/** Opens connections until the load ends. Each request that failed is repeated up to `repeats` times. */
export async function connectSteadily(run: LoadRun, repeats: number): Promise<void> {
  const request = async () => {
    run.counts.connections += 1;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await connectOnce(run);
      } catch (error) {
        if (attempt === repeats) {
          run.failures.push(`connection: ${error}`);
          return;
        }
        run.counts.repeats += 1;
        await sleep(repeatAfter);
      }
    }
  };
  const open = new Set<Promise<void>>();
  const start = performance.now();
  for (let number = 1; !run.over.aborted; number += 1) {
    const one = request().finally(() => open.delete(one));
    open.add(one);
    await sleep(start + (number * 1_000) / perSecond - performance.now(), run.over);
  }
  await Promise.all(open);
}
