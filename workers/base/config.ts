import { isIP } from "node:net";
import { availableParallelism, homedir, totalmem } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { dataDirectory } from "../../src/platform/data-directory.ts";
import { ConfigError, type Environment, readerOf } from "../../src/platform/environment.ts";
import { type FleetTlsFiles, readFleetTls } from "../../src/platform/grpc/fleet-tls.ts";
import { type IsolationConfig, readIsolation } from "../../src/platform/isolation.ts";
import { type LogLevel, logLevels } from "../../src/platform/log.ts";
import { isAddressException } from "../../src/platform/outgoing/address-rules.ts";
import { readWorkerToken } from "../../src/platform/worker-token.ts";

/** Memory that one session is reckoned with, half of what it may take, and sessions that a core carries. */
const sessionBytes = 1024 ** 3;
const sessionsPerCore = 8;
const maxSlots = 256;

/** Everything that the environment says to a worker. */
export interface WorkerConfig extends IsolationConfig {
  /** The worker of a service on one machine: it ends when it has no control process any more. */
  readonly embedded: boolean;
  readonly dataDir: string;
  /** Which worker of the machine it is: the directory of its identity. */
  readonly index: number;
  /** `host:port` or `unix:/path` to listen on. */
  readonly listen: string;
  /** The same as gateways reach it. */
  readonly address: string;
  readonly token: string;
  readonly slots: number;
  /** How many browsers of a runtime are launched ahead at most. */
  readonly warmBrowsers: number;
  /** Where the control processes are. */
  readonly control: readonly string[];
  /** Certificates of the fleet link; in clear text without. */
  readonly fleetTls: FleetTlsFiles | undefined;
  /** Where the files of running sessions lie, if the operator says so. */
  readonly scratch: string | undefined;
  /** CIDRs or host:port that pages may reach although private. */
  readonly egressAllow: readonly string[];
  /** LiveKit server for video, if any. */
  readonly livekitUrl: string | undefined;
  /** How long running sessions may go on when the worker is told to end, in seconds. */
  readonly drainSeconds: number;
  /** From which pressure of the machine the worker takes no new sessions, in percent; 100 never. */
  readonly closeAt: { readonly memory: number; readonly cpu: number };
  /** Where health and metrics are served, beside where gateways command; nowhere when absent. */
  readonly internal: { readonly host: string; readonly port: number } | undefined;
  readonly logLevel: LogLevel;
}

/** Reads the configuration. Throws a ConfigError for the first invalid variable. */
export function readWorkerConfig(env: Environment, uid = process.getuid?.() ?? -1): WorkerConfig {
  const read = readerOf(env);
  if (read.text("GATEWAYS") !== undefined)
    throw new ConfigError("GATEWAYS", "is not read any more: set CONTROL to the addresses of the control processes");
  const control = read.list("CONTROL", "addresses `host:port` or `unix:/path` of control processes", isAddress);
  if (control.length === 0) throw new ConfigError("CONTROL", "accepts at least one `host:port` or `unix:/path`");
  const listen = readAddress(env, "WORKER_LISTEN", undefined);
  const internalPort = read.integer("INTERNAL_PORT", { min: 0, max: 65_535, absent: -1 });
  // Only the worker of a service on one machine is reached through a socket beside it.
  const embedded = control.every((address) => address.startsWith("unix:"));
  return {
    embedded,
    dataDir: resolve(dataDirectory({ env, uid, home: homedir() })),
    index: read.integer("WORKER_INDEX", { min: 0, max: 9_999, absent: 0 }),
    listen,
    address: readAddress(env, "WORKER_ADDRESS", listen),
    token: readWorkerToken(read, true),
    slots: read.integer("WORKER_SLOTS", { min: 1, max: maxSlots, absent: defaultSlots() }),
    // A warm shell costs 78 MB, and a pool of 8 hides all of a launch that two cores leave to hide.
    warmBrowsers: read.integer("WARM_BROWSERS", { min: 0, max: maxSlots, absent: 8 }),
    control,
    fleetTls: readFleetTls(read),
    scratch: readDirectory(env, "SCRATCH_DIR"),
    egressAllow: read.list("EGRESS_ALLOW", "CIDRs and host:port", isAddressException),
    ...readIsolation(read),
    livekitUrl: read.url("LIVEKIT_URL", ["ws:", "wss:"]),
    // Ctrl-C ends all that `npm start` began.
    drainSeconds: read.integer("DRAIN_SECONDS", { min: 0, max: 86_400, absent: embedded ? 0 : 300 }),
    closeAt: {
      memory: read.integer("CLOSE_AT_MEMORY", { min: 1, max: 100, absent: 90 }),
      cpu: read.integer("CLOSE_AT_CPU", { min: 1, max: 100, absent: 95 }),
    },
    internal: internalPort < 0 ? undefined : { host: hostOf(listen), port: internalPort },
    logLevel: read.oneOf("LOG_LEVEL", logLevels, "info"),
  };
}

/** As many sessions as cores and memory carry, whichever is less. */
function defaultSlots(cores = availableParallelism(), memory = totalmem()): number {
  const carried = Math.min(cores * sessionsPerCore, Math.floor(memory / sessionBytes));
  return Math.min(Math.max(carried, 1), maxSlots);
}

function readDirectory(env: Environment, name: string): string | undefined {
  const value = env[name] || undefined;
  if (value !== undefined && !isAbsolute(value)) throw new ConfigError(name, "accepts an absolute path");
  return value;
}

function readAddress(env: Environment, name: string, absent: string | undefined): string {
  const value = env[name] || absent;
  if (value === undefined || !isAddress(value)) throw new ConfigError(name, "accepts `host:port` or `unix:/path`");
  return value;
}

/** The host that an address to listen on names: loopback beside a unix socket. */
function hostOf(listen: string): string {
  return listen.startsWith("unix:") ? "127.0.0.1" : listen.replace(/:\d+$/, "").replace(/^\[(.+)\]$/, "$1");
}

function isAddress(item: string): boolean {
  if (item.startsWith("unix:")) return item.length > "unix:/".length;
  const match = /^(?:\[([^\]]+)\]|([^:/\s]+)):(\d{1,5})$/.exec(item);
  return match !== null && Number(match[3]) < 65_536 && (!match[1] || isIP(match[1]) === 6);
}
