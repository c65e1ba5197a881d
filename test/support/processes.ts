import { listProcesses } from "./process-list.ts";

/** Ends of the command lines of a single-machine service's processes. */
const commands = {
  supervisor: /gateway\/main\.ts$/,
  control: /gateway\/main\.ts control$/,
  gateway: /gateway\/main\.ts gateway$/,
  worker: /workers\/main\.ts --data-dir=\S+$/,
  postgres: /\/postgres -D /,
} as const;

/** Process of a single-machine service. */
export type ServiceProcess = keyof typeof commands;

/** Finds a process of a service by the service's data directory; undefined if there is none. */
export function findPid(dataDir: string, process: ServiceProcess): number | undefined {
  return listProcesses().find((each) => each.dataDir === dataDir && commands[process].test(each.command))?.pid;
}

/** Returns the pid of a process of a service. Throws if there is none. */
export function pidOf(dataDir: string, process: ServiceProcess): number {
  const pid = findPid(dataDir, process);
  if (pid === undefined) throw new Error(`the service in ${dataDir} has no ${process}`);
  return pid;
}
