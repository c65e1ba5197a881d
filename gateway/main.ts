import { type Config, readConfig } from "../src/platform/config.ts";
import { ConfigError } from "../src/platform/environment.ts";
import { describeUnexpectedError, StartRefused } from "../src/platform/start-refused.ts";
import { EndedAtStart } from "./processes/supervised-process.ts";

/** Programs by name, loaded on demand so that a control process restarts within its lease. */
const programs = {
  supervisor: async () => (await import("./processes/supervisor-process.ts")).runSupervisor,
  control: async () => (await import("./processes/control-process.ts")).runControl,
  gateway: async () => (await import("./processes/gateway-process.ts")).runGateway,
};

/**
 * Returns the name of the program. A process that the supervisor started has the name as its argument. Otherwise,
 * without REDIS_URL the program is the supervisor; with REDIS_URL, ROLE decides.
 */
function programOf({ redisUrl, role }: Config): keyof typeof programs {
  const [name] = process.argv.slice(2);
  if (process.connected && (name === "control" || name === "gateway")) return name;
  if (redisUrl === undefined) return "supervisor";
  return role === "control" ? "control" : "gateway";
}

/** Runs the program that the environment selects. */
async function main(): Promise<void> {
  const config = readConfig(process.env);
  const run = await programs[programOf(config)]();
  await run(config).catch((error: unknown) => {
    throw portInUse(error, config) ?? error;
  });
}

/**
 * If a port is in use, returns an error that names the variable of the port. Reads the port from the error text,
 * because errors of grpc-js contain it nowhere else.
 */
function portInUse(error: unknown, config: Config): StartRefused | undefined {
  const taken = error instanceof Error ? /EADDRINUSE.*:(\d+)/.exec(error.message)?.[1] : undefined;
  const { port, grpcPort, internalPort, fleetPort } = config;
  const ports = { PORT: port, GRPC_PORT: grpcPort, INTERNAL_PORT: internalPort, FLEET_PORT: fleetPort };
  const names = Object.entries(ports).flatMap(([name, value]) => (String(value) === taken ? [name] : []));
  if (names.length === 0) return undefined;
  return new StartRefused(
    `port ${taken} is in use: stop the program that listens there, or set ${names.join(" or ")}`,
    {
      cause: error,
    },
  );
}

/** Returns a sentence that explains why the service cannot run. */
function explain(error: unknown): string {
  if (error instanceof ConfigError || error instanceof StartRefused) return error.message;
  return describeUnexpectedError(error);
}

main().catch((error: unknown) => {
  if (!(error instanceof EndedAtStart)) process.stderr.write(`pilothouse: ${explain(error)}\n`);
  process.exitCode = 1;
  // An open channel to a supervisor would keep the process alive.
  process.channel?.unref();
});
