import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { databaseUrl, makeClusterDirectory } from "./database.ts";
import { freePorts } from "./free-port.ts";
import { recordLog, recordLogFile } from "./logs.ts";
import { pidOf, type ServiceProcess } from "./processes.ts";

/** Complete service with its PostgreSQL and worker, as `npm start` runs it. */
export interface Service {
  readonly url: string;
  readonly grpcAddress: string;
  readonly internalUrl: string;
  readonly key: string;
  readonly dataDir: string;
  readonly databaseUrl: string;
  /** The started process, which starts all others. */
  readonly supervisor: ChildProcess;
  /** Returns the pid of one of the service's processes. */
  pidOf(process: ServiceProcess): number;
  /** Returns the output so far. */
  output(): string;
  /** Restarts the ended service on the same data and ports. `onPrint` receives the whole output so far. */
  restart(env?: Record<string, string>, onPrint?: (printed: string) => void): Promise<Service>;
  /** Ends all processes and deletes the data. */
  stop(): Promise<void>;
}

const startMs = 60_000;
const stopMs = 45_000;

/** Environment of a service. Its worker must not close itself to sessions because tests load two cores. */
export const serviceEnv = (dataDir: string): Record<string, string | undefined> => ({
  ...process.env,
  DATA_DIR: dataDir,
  LOG_LEVEL: "warn",
  CLOSE_AT_CPU: "100",
});

/** Starts a service for a test. `env` extends its environment, and `directory` holds its data. */
export async function startService(
  env: Record<string, string> = {},
  directory?: string,
  command: readonly string[] = [process.execPath, "gateway/main.ts"],
): Promise<Service> {
  const dataDir = directory ?? (await makeClusterDirectory());
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  return run(command, dataDir, { ...variables, ...env }, ports);
}

async function run(
  command: readonly string[],
  dataDir: string,
  env: Record<string, string>,
  ports: Record<"PORT" | "GRPC_PORT" | "INTERNAL_PORT", number>,
  onPrint: (printed: string) => void = () => undefined,
): Promise<Service> {
  let printed = "";
  recordLogFile(join(dataDir, "worker.log"));
  const [program = "", ...parameters] = command;
  const supervisor = spawn(program, parameters, {
    env: { ...serviceEnv(dataDir), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`the service ${why}:\n${printed}`));
    const deadline = setTimeout(() => fail(`was not ready within ${startMs} ms`), startMs);
    supervisor.once("exit", (code) => fail(`ended with ${code}`));
    const receive = (text: Buffer): void => {
      printed += text.toString();
      recordLog(text.toString());
      onPrint(printed);
      if (printed.includes("Pilothouse is ready")) {
        clearTimeout(deadline);
        resolve();
      }
    };
    supervisor.stdout?.on("data", receive);
    supervisor.stderr?.on("data", receive);
  });
  // Reports an unexpected exit with its output. 130 is the exit code after a second signal.
  supervisor.once(
    "exit",
    (code) => code && code !== 130 && console.error(`the service ended with ${code}:\n${printed}`),
  );
  return {
    url: `http://127.0.0.1:${ports.PORT}`,
    grpcAddress: `127.0.0.1:${ports.GRPC_PORT}`,
    internalUrl: `http://127.0.0.1:${ports.INTERNAL_PORT}`,
    key: (await readFile(join(dataDir, "dev-api-key"), "utf8")).trim(),
    dataDir,
    databaseUrl: databaseUrl(join(dataDir, "postgres", "run")),
    supervisor,
    pidOf: (process) => pidOf(dataDir, process),
    output: () => printed,
    restart: (more = {}, onPrint) => run(command, dataDir, { ...env, ...more }, ports, onPrint),
    stop: async () => {
      await end(supervisor);
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function end(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const ended = once(process, "exit");
  process.kill("SIGTERM");
  const deadline = setTimeout(() => process.kill("SIGKILL"), stopMs);
  await ended;
  clearTimeout(deadline);
}
