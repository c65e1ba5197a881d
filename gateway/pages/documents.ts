import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { ServedService } from "../../src/kernel/registry.ts";
import type { Config } from "../../src/platform/config.ts";

export interface Documents {
  readonly openApiJson: string;
  readonly docsHtml: string;
}

/** Input of a build. Services are given by their full names. */
export interface DocumentsTask {
  readonly services: readonly string[];
  readonly publicUrl: string;
  readonly errorsBase: string;
}

/** Timeout of a build in milliseconds. A build takes about 2 s. */
const buildMs = 60_000;

/** Heap limits of the thread. */
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 };

const program = new URL("./documents-worker.ts", import.meta.url);

/**
 * Creates the function that returns the documents. Its first call builds the documents in a thread, because a build
 * takes about a second of CPU time and most gateways never need the documents. After a failure, the next call builds
 * them again. `stopped` aborts a build.
 */
export function createDocuments(
  services: readonly ServedService[],
  { publicUrl, errorsBase }: Config,
  stopped: AbortSignal,
): () => Promise<Documents> {
  const task = { services: services.map(({ service }) => service.typeName), publicUrl, errorsBase };
  let documents: Promise<Documents> | undefined;
  return () => {
    documents ??= build(task, stopped).catch((error: unknown) => {
      documents = undefined;
      throw error;
    });
    return documents;
  };
}

async function build(task: DocumentsTask, stopped: AbortSignal): Promise<Documents> {
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(buildMs)]);
  const worker = new Worker(program, { workerData: task, resourceLimits });
  try {
    const [documents] = await once(worker, "message", { signal });
    return documents;
  } finally {
    await worker.terminate();
  }
}
