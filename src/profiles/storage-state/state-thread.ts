import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type FieldFault, fail, failFaults, maxFaults } from "../../platform/errors.ts";
import { createLimiter } from "../../platform/limiter.ts";

/** Task of the thread: a profile store to read, or a storage state (JSON) to write. */
export type StateTask =
  | { readonly kind: "read"; readonly store: Uint8Array }
  | { readonly kind: "write"; readonly json: Uint8Array; readonly now: number };

/** Result of the thread: a state or store (`bytes`), the faults of a state, or the reason why a store was refused. */
export type StateAnswer =
  | { readonly bytes: Uint8Array }
  | { readonly faults: readonly FieldFault[] }
  | { readonly refused: string };

/** Maximum bytes of a storage state. */
export const longestState = 16 * 2 ** 20;

/** Milliseconds for one task. 16 MiB take less than a second. */
const taskMs = 20_000;

/** Maximum number of concurrent threads. */
const atOnce = 2;

/** Maximum megabytes of a thread's heap, in addition to its buffers. */
const resourceLimits = { maxOldGenerationSizeMb: 384, maxYoungGenerationSizeMb: 32 };

const program = new URL("./state-worker.ts", import.meta.url);

/**
 * Creates the converter between profile stores and storage states. Each task runs in its own thread, because profiles
 * come from hostile pages and may be large. Throws `validation-failed` for an invalid state, and `conflict` if the
 * conversion fails or takes longer than `taskMs`.
 */
export function createStateConverter(): (task: StateTask) => Promise<Uint8Array> {
  const limit = createLimiter(atOnce);

  async function run(task: StateTask): Promise<StateAnswer> {
    const worker = new Worker(program, { workerData: task, resourceLimits });
    try {
      const [answer] = await once(worker, "message", { signal: AbortSignal.timeout(taskMs) });
      return answer;
    } catch (cause) {
      const detail = "the profile could not be converted: it may be damaged or too large";
      throw fail("conflict", {}, { detail, cause });
    } finally {
      await worker.terminate();
    }
  }

  return async (task) => {
    const answer = await limit(() => run(task));
    if ("bytes" in answer) return answer.bytes;
    if ("faults" in answer) throw failFaults("validation-failed", answer.faults.slice(0, maxFaults));
    throw fail("conflict", {}, { detail: answer.refused });
  };
}
