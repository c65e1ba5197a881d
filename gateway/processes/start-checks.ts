import { once } from "node:events";
import { access, constants, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { Config } from "../../src/platform/config.ts";
import { makePassableDirectory } from "../../src/platform/data-directory.ts";
import type { Part } from "../../src/platform/lifetime.ts";
import { commandLine, isAlive, startTime } from "../../src/platform/process-control.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";

/** Milliseconds to wait for a killed service to disappear and for its processes to release their ports. */
const timeout = 3_000;

/** Path that the command line of a supervisor contains. */
const program = join("gateway", "main.ts");

/** Contents of `running.json`, which identifies the service that uses the directory. */
interface RunningInstance {
  readonly pid: number;
  /** Result of `startTime` for the process. */
  readonly started: string;
  readonly url: string;
}

const recordIn = (dataDir: string): string => join(dataDir, "running.json");

/**
 * Throws if DATA_DIR, PORT, GRPC_PORT or INTERNAL_PORT cannot be used or, in embedded mode, if a service is running in
 * DATA_DIR. `gateway/main.ts` explains the error of a port in use.
 */
export async function checkStart(config: Config): Promise<void> {
  await checkDirectory(config.dataDir);
  if (config.embedded) await refuseSecondInstance(config.dataDir);
  await refuseTakenPorts(config);
}

/**
 * In embedded mode, records this process in `running.json`, so that the error of a second service can name this
 * process.
 */
export function createInstanceRecord({ embedded, dataDir, publicUrl }: Config): Part {
  if (!embedded) return {};
  return {
    async start() {
      const instance: RunningInstance = {
        pid: process.pid,
        started: await startTime(process.pid),
        url: publicUrl,
      };
      await writeFile(recordIn(dataDir), `${JSON.stringify(instance)}\n`);
    },
    stop: () => rm(recordIn(dataDir), { force: true }),
  };
}

async function checkDirectory(dataDir: string): Promise<void> {
  try {
    await makePassableDirectory(dataDir);
    await access(dataDir, constants.W_OK | constants.X_OK);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartRefused(`DATA_DIR cannot be used: ${reason}. Set it to a directory that this user can write`, {
      cause: error,
    });
  }
}

async function refuseSecondInstance(dataDir: string): Promise<void> {
  const instance = await readRecord(dataDir);
  if (!instance || (await waitUntil(async () => !(await isRunning(instance)), { timeout, every: 100 }))) return;
  throw new StartRefused(
    `Pilothouse is already running at ${instance.url} with this DATA_DIR, pid ${instance.pid}. ` +
      "For a second one set DATA_DIR, PORT, GRPC_PORT and INTERNAL_PORT",
  );
}

async function readRecord(dataDir: string): Promise<RunningInstance | undefined> {
  try {
    return JSON.parse(await readFile(recordIn(dataDir), "utf8"));
  } catch {
    // No service is running here, or a service was killed during the write.
    return undefined;
  }
}

/** Returns whether the recorded process still runs. Compares start times, since pids are reused. */
async function isRunning({ pid, started }: RunningInstance): Promise<boolean> {
  if (pid === process.pid || !isAlive(pid)) return false;
  return (await startTime(pid)) === started && (await commandLine(pid)).includes(program);
}

async function refuseTakenPorts({ host, port, grpcPort, internalPort }: Config): Promise<void> {
  await using held = new AsyncDisposableStack();
  const ports = { PORT: port, GRPC_PORT: grpcPort, INTERNAL_PORT: internalPort };
  for (const [name, wanted] of Object.entries(ports)) {
    let failure: unknown;
    const isFree = async (): Promise<boolean> => {
      const server = createServer().listen(wanted, host);
      failure = await once(server, "listening").then(
        () => undefined,
        (error: unknown) => error,
      );
      if (failure === undefined) held.use(server);
      return failure === undefined || !isInUse(failure);
    };
    await waitUntil(isFree, { timeout, every: 100 });
    if (failure === undefined) continue;
    // gateway/main.ts explains this error, which also occurs if the port is taken later.
    if (isInUse(failure)) throw failure;
    const reason = failure instanceof Error ? failure.message : String(failure);
    throw new StartRefused(`${name} cannot be used: ${reason}. Set another ${name}, or HOST`, { cause: failure });
  }
}

const isInUse = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "EADDRINUSE";
