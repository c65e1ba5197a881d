import { isIP } from "node:net";
import { availableParallelism, homedir, totalmem } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { dataDirectory } from "../../src/platform/data-directory.ts";
import { ConfigError, type Environment, type EnvironmentReader, readerOf } from "../../src/platform/environment.ts";
import { type FleetTlsFiles, readFleetTls } from "../../src/platform/grpc/fleet-certificates.ts";
import { type IsolationConfig, readIsolation } from "../../src/platform/isolation.ts";
import { type LogLevel, logLevels } from "../../src/platform/log.ts";
import { isAddressException } from "../../src/platform/outgoing/address-rules.ts";
import { withSecretFiles } from "../../src/platform/secret-files.ts";
import { defaultPool, isPoolName } from "../../src/platform/worker-pool.ts";
import { readWorkerToken } from "../../src/platform/worker-token-file.ts";

/** Bytes of memory planned per session: half of the session's limit. */
const sessionBytes = 1024 ** 3;
const sessionsPerCore = 8;
const maxSlots = 256;

/** Kinds of block lists that an operator can configure. */
export const listKinds = ["ads", "trackers"] as const;
export type ListKind = (typeof listKinds)[number];

/** An operator's list of hosts that sessions may block. */
export interface BlockListFile {
  readonly kind: ListKind;
  readonly path: string;
}

export interface WorkerConfig extends IsolationConfig {
  /** Whether the worker shares a machine with its control process. If so, the worker exits when it loses its lease. */
  readonly embedded: boolean;
  readonly dataDir: string;
  /** Number of the worker on the machine. Selects the directory of the worker's identity. */
  readonly index: number;
  /** `host:port` or `unix:/path` to listen on. */
  readonly listen: string;
  /** Address at which gateways reach the worker. */
  readonly address: string;
  readonly token: string;
  readonly slots: number;
  /** Name of a group of identical workers, which an autoscaler resizes. */
  readonly pool: string;
  /** Largest number of warm browsers per runtime. */
  readonly warmBrowsers: number;
  /** Addresses of the control processes. */
  readonly control: readonly string[];
  /** Certificates of the fleet link. Undefined: clear text. */
  readonly fleetTls: FleetTlsFiles | undefined;
  /** Directory for files of running sessions. Undefined: the default. */
  readonly scratch: string | undefined;
  /** CIDRs or `host:port` of private targets that pages may reach. */
  readonly egressAllow: readonly string[];
  /** Lists of hosts that sessions may block. */
  readonly blockLists: readonly BlockListFile[];
  /** LiveKit server for video, if any. */
  readonly livekitUrl: string | undefined;
  /** Maximum seconds for which sessions may continue after a stop signal or a drain request. */
  readonly drainSeconds: number;
  /** Machine pressure in percent at which the worker stops accepting sessions; 100 disables the check. */
  readonly closeAt: { readonly memory: number; readonly cpu: number };
  /** Address of health and metrics, separate from the command port. Undefined: not served. */
  readonly internal: { readonly host: string; readonly port: number } | undefined;
  readonly logLevel: LogLevel;
}

/** Reads the configuration. Throws a ConfigError for the first invalid variable. */
export function readWorkerConfig(given: Environment, uid = process.getuid?.() ?? -1): WorkerConfig {
  const env = withSecretFiles(given);
  const read = readerOf(env);
  if (read.text("GATEWAYS") !== undefined)
    throw new ConfigError("GATEWAYS", "is no longer supported: set CONTROL to the addresses of the control processes");
  const control = read.list("CONTROL", "addresses `host:port` or `unix:/path` of control processes", isAddress);
  if (control.length === 0) throw new ConfigError("CONTROL", "requires at least one `host:port` or `unix:/path`");
  const listen = readAddress(env, "WORKER_LISTEN", undefined);
  const internalPort = read.integer("INTERNAL_PORT", { min: 0, max: 65_535, absent: -1 });
  // A worker is embedded if it reaches all control processes through local sockets.
  const embedded = control.every((address) => address.startsWith("unix:"));
  return {
    embedded,
    dataDir: resolve(dataDirectory({ env, uid, home: homedir() })),
    index: read.integer("WORKER_INDEX", { min: 0, max: 9_999, absent: 0 }),
    listen,
    address: readAddress(env, "WORKER_ADDRESS", listen),
    token: readWorkerToken(read, true),
    slots: read.integer("WORKER_SLOTS", { min: 1, max: maxSlots, absent: defaultSlots() }),
    pool: readPool(read),
    // A warm headless shell uses 78 MB. On two cores, more than 8 do not shorten the start of sessions further.
    warmBrowsers: read.integer("WARM_BROWSERS", { min: 0, max: maxSlots, absent: 8 }),
    control,
    fleetTls: readFleetTls(read),
    scratch: readDirectory(env, "SCRATCH_DIR"),
    egressAllow: read.list("EGRESS_ALLOW", "CIDRs and host:port", isAddressException),
    blockLists: readBlockListFiles(read),
    ...readIsolation(read),
    livekitUrl: read.url("LIVEKIT_URL", ["ws:", "wss:"]),
    // By default, an embedded worker does not drain, so that Ctrl-C ends `npm start` at once.
    drainSeconds: read.integer("DRAIN_SECONDS", { min: 0, max: 86_400, absent: embedded ? 0 : 300 }),
    closeAt: {
      memory: read.integer("CLOSE_AT_MEMORY", { min: 1, max: 100, absent: 90 }),
      cpu: read.integer("CLOSE_AT_CPU", { min: 1, max: 100, absent: 95 }),
    },
    internal: internalPort < 0 ? undefined : { host: hostOf(listen), port: internalPort },
    logLevel: read.oneOf("LOG_LEVEL", logLevels, "info"),
  };
}

/** Reads the pool's name, which must be a lower-case DNS label. */
function readPool(read: EnvironmentReader): string {
  const pool = read.text("WORKER_POOL") ?? defaultPool;
  if (!isPoolName(pool))
    throw new ConfigError("WORKER_POOL", "accepts at most 63 lower-case letters, digits and inner hyphens");
  return pool;
}

function defaultSlots(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  const affordable = Math.min(availableParallelism() * sessionsPerCore, Math.floor(memory / sessionBytes));
  return Math.min(Math.max(affordable, 1), maxSlots);
}

/** `kind=path` of a list. */
const blockListItem = /^(ads|trackers)=(\/.+)$/;

function readBlockListFiles(read: EnvironmentReader): BlockListFile[] {
  const items = read.list("BLOCK_LISTS", "`ads=` or `trackers=` and the absolute path of a list", (item) =>
    blockListItem.test(item),
  );
  return items.map((item) => {
    const [, kind, path = ""] = blockListItem.exec(item) ?? [];
    return { kind: kind === "ads" ? "ads" : "trackers", path };
  });
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

/** Returns the host of a listen address; loopback for a unix socket. */
function hostOf(listen: string): string {
  return listen.startsWith("unix:") ? "127.0.0.1" : listen.replace(/:\d+$/, "").replace(/^\[(.+)\]$/, "$1");
}

function isAddress(item: string): boolean {
  if (item.startsWith("unix:")) return item.length > "unix:/".length;
  const match = /^(?:\[([^\]]+)\]|([^:/\s]+)):(\d{1,5})$/.exec(item);
  return match !== null && Number(match[3]) < 65_536 && (!match[1] || isIP(match[1]) === 6);
}
