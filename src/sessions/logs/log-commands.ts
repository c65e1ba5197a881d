import type { SessionLogPage } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { SessionLogEntry } from "../../gen/pilothouse/v1/session_log_pb.ts";
import { fleetCommands } from "../../platform/grpc/fleet-commands.ts";
import type { SessionCaller } from "../commands/session-caller.ts";
import type { WorkerCommands } from "../commands/worker-commands.ts";

/** Reads the log of a running session from its worker. `after` is the number of an entry, or 0. */
export interface LogCommands {
  read(caller: SessionCaller, id: string, range: { after: number; limit: number }): Promise<SessionLogPage>;
  /** Yields existing and new entries until the session ends. */
  follow(caller: SessionCaller, id: string, after: number): AsyncIterable<SessionLogEntry>;
}

export function createLogCommands(commands: WorkerCommands): LogCommands {
  return {
    read: (caller, id, range) => commands.run(caller, id, fleetCommands.readLog, range),
    follow: (caller, id, after) =>
      commands.stream(caller, id, fleetCommands.followLog, { after }, { until: caller.signal, isEndless: true }),
  };
}
