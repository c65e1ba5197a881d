import { isIP } from "node:net";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { dataDirectory } from "./data-directory.ts";
import { ConfigError, type Environment, type EnvironmentReader, readerOf } from "./environment.ts";
import { type FleetTlsFiles, readFleetTls } from "./grpc/fleet-certificates.ts";
import { type IsolationConfig, readIsolation } from "./isolation.ts";
import { type BundledLlmConfig, type LlmAddresses, readBundledLlm, readLlmAddresses } from "./llm-config.ts";
import { type LogLevel, logLevels } from "./log.ts";
import { isAddressException, isNetwork, isPrivateName, parseTarget } from "./outgoing/address-rules.ts";
import { parseSentinelUrl } from "./redis/sentinel-url.ts";
import { withSecretFiles } from "./secret-files.ts";
import { parseSecretsKeys, type SecretsKey } from "./secrets/secrets-keys.ts";
import { type Prices, readPrices } from "./tier-prices.ts";
import { readTraces, type TraceConfig } from "./traces/trace-config.ts";
import { isPoolName } from "./worker-pool.ts";
import { readWorkerToken } from "./worker-token-file.ts";

/** Paths of a certificate and its key. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** A LiveKit server with an API key. */
export interface LiveKitConfig {
  readonly url: string;
  readonly key: string;
  readonly secret: string;
}

export interface StripeConfig {
  readonly url: string;
  readonly secretKey: string;
  /** Verifies webhooks of Stripe. */
  readonly webhookSecret: string;
}

/** A store of a BTCPay Server. */
export interface BtcPayConfig {
  readonly url: string;
  readonly apiKey: string;
  readonly store: string;
  /** Verifies webhooks of the server. */
  readonly webhookSecret: string;
  /** Accepted cryptocurrencies in lower case. */
  readonly currencies: readonly string[];
}

/**
 * Role of a process. `control` manages workers and ends sessions, `api` serves clients, `jobs` runs background jobs.
 * `all` combines `api` and `jobs`, and is the only role on a single machine (gateway/main.ts).
 */
export type ProcessRole = "all" | "api" | "jobs" | "control";

/** Configuration of a gateway or control process, read from the environment. */
export interface Config {
  /** Whether the service runs its own PostgreSQL and worker, because DATABASE_URL is not set. */
  readonly embedded: boolean;
  readonly host: string;
  readonly port: number;
  readonly grpcPort: number;
  readonly internalPort: number;
  readonly fleetPort: number;
  /** Without a trailing slash. */
  readonly publicUrl: string;
  /** Without a trailing slash. */
  readonly errorsBase: string;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  /** Whether control processes run migrations. If not, they wait for `npm run admin -- migrate`. */
  readonly migrates: boolean;
  readonly redisUrl: string | undefined;
  readonly role: ProcessRole;
  readonly workerToken: string | undefined;
  /** On Kubernetes: location of the worker pods, to set their deletion cost. */
  readonly workerPods: WorkerPods | undefined;
  readonly tls: TlsFiles | undefined;
  readonly fleetTls: FleetTlsFiles | undefined;
  /** Addresses and CIDRs of proxies with trusted X-Forwarded-* headers. */
  readonly trustedProxies: readonly string[];
  readonly corsOrigins: readonly string[];
  /** Origins that may embed the live page. */
  readonly embedOrigins: readonly string[];
  /** LiveKit server for video, if any. */
  readonly liveKit: LiveKitConfig | undefined;
  /** Maximum milliseconds that a session create waits for a slot. */
  readonly queueMs: number;
  /** Milliseconds that a gateway keeps serving after SIGTERM while it reports not ready. */
  readonly shutdownDelayMs: number;
  /** Maximum number of bytes held for clients: bodies, messages and unread responses. */
  readonly clientBufferBytes: number;
  /** `host:port` used to test customers' proxies before a session starts. */
  readonly proxyCheck: string;
  /** Private CIDRs and `host:port` that webhooks may use, also without TLS. */
  readonly webhookAllow: readonly string[];
  /** Private CIDRs and `host:port` that LLM providers may use, also without TLS. */
  readonly llmAllow: readonly string[];
  /** HTTP proxy for requests to servers of customers and providers. */
  readonly outgoingProxy: string | undefined;
  /** File of additional certificate authorities to trust for requests to servers of customers and providers. */
  readonly outgoingCaFile: string | undefined;
  /** Base URLs that replace those of LLM providers, such as the URL of a proxy. */
  readonly llmAddresses: LlmAddresses;
  /** LLM for turns of accounts without their own key, if the operator pays for one. */
  readonly bundledLlm: BundledLlmConfig | undefined;
  /** Keys that seal secrets, newest first. If empty (embedded mode only), a key in DATA_DIR is used. */
  readonly secretsKeys: readonly SecretsKey[];
  /** SMTP server. If undefined, embedded mode keeps e-mails in the outbox. */
  readonly smtpUrl: string | undefined;
  readonly mailFrom: string;
  /** Recipient of e-mails about matters that need a person's attention, such as an underpaid order. */
  readonly operatorEmail: string | undefined;
  readonly signup: "open" | "closed";
  /** JSON file with limits of tiers, which replace the built-in limits. */
  readonly tiersFile: string | undefined;
  readonly prices: Prices;
  /** Processor of card payments. */
  readonly stripe: StripeConfig | undefined;
  /** Processor of cryptocurrency payments. */
  readonly btcPay: BtcPayConfig | undefined;
  /** Promised uptime in percent. */
  readonly slaTarget: number;
  /** Confinement of browsers by the embedded worker. */
  readonly isolation: IsolationConfig;
  readonly logLevel: LogLevel;
  /** Whether a gateway logs each request. */
  readonly accessLog: boolean;
  /** Collector of traces, if any. */
  readonly traces: TraceConfig | undefined;
}

/** Namespace of the workers' pods, and the API server of the cluster. */
export interface WorkerPods {
  readonly namespace: string;
  readonly host: string;
  readonly port: number;
}

/** User and terminal of the process. */
export interface ProcessOwner {
  readonly uid: number;
  readonly home: string;
  /** Whether standard error, to which the log is written, is a terminal. */
  readonly hasTerminal?: boolean;
}

/** Maximum length of a unix socket path without the final zero (sockaddr_un has 108 bytes on Linux, 104 on macOS). */
const longestSocketPath = 103;

/** Longest socket path within DATA_DIR. */
const longestSocketName = join("postgres", "run", ".s.PGSQL.5432");

const isOrigin = (item: string): boolean => URL.canParse(item) && new URL(item).origin === item;

function readPort(read: EnvironmentReader, name: string, absent: number): number {
  return read.integer(name, { min: 0, max: 65_535, absent });
}

function readRedisUrl(read: EnvironmentReader): string | undefined {
  const text = read.text("REDIS_URL");
  if (text && parseSentinelUrl(text)) return text;
  if (text?.includes("+sentinel:")) {
    throw new ConfigError(
      "REDIS_URL",
      "accepts `redis+sentinel://[user:password@]host:port,host:port/name[/database]`",
    );
  }
  const url = read.url("REDIS_URL", ["redis:", "rediss:"]);
  if (url && !/^\/?\d*$/.test(new URL(url).pathname)) {
    throw new ConfigError("REDIS_URL", "accepts the number of a database as its path");
  }
  return url;
}

function readTls(read: EnvironmentReader): TlsFiles | undefined {
  const files = read.together("TLS_CERT", "TLS_KEY");
  return files && { cert: files.TLS_CERT, key: files.TLS_KEY };
}

/** Reads the LiveKit server. Workers receive only its URL. */
function readLiveKit(read: EnvironmentReader): LiveKitConfig | undefined {
  const url = read.url("LIVEKIT_URL", ["ws:", "wss:"]);
  const given = (name: string): string => {
    const value = read.text(name);
    if (value === undefined)
      throw new ConfigError(name, "is required with LIVEKIT_URL: an API key of the server, or its secret");
    return value;
  };
  return url === undefined ? undefined : { url, key: given("LIVEKIT_API_KEY"), secret: given("LIVEKIT_API_SECRET") };
}

/** Returns a function that reads a variable which is required if `first` is set. */
function requiredWith(read: EnvironmentReader, first: string): (name: string) => string {
  return (name) => {
    const value = read.text(name);
    if (value === undefined) throw new ConfigError(name, `is required with ${first}`);
    return value;
  };
}

function readStripe(read: EnvironmentReader): StripeConfig | undefined {
  const secretKey = read.text("STRIPE_SECRET_KEY");
  const url = read.url("STRIPE_URL", ["http:", "https:"]) ?? "https://api.stripe.com";
  if (secretKey === undefined) return undefined;
  return { url, secretKey, webhookSecret: requiredWith(read, "STRIPE_SECRET_KEY")("STRIPE_WEBHOOK_SECRET") };
}

function readBtcPay(read: EnvironmentReader): BtcPayConfig | undefined {
  const url = read.url("BTCPAY_URL", ["http:", "https:"]);
  const isCurrency = (item: string): boolean => /^[a-z0-9]{2,12}$/.test(item);
  const currencies = read.list("CRYPTO_CURRENCIES", "cryptocurrencies in lower case, such as `btc`", isCurrency);
  if (url === undefined) return undefined;
  const needed = requiredWith(read, "BTCPAY_URL");
  const keys = { apiKey: needed("BTCPAY_API_KEY"), webhookSecret: needed("BTCPAY_WEBHOOK_SECRET") };
  return { url, store: needed("BTCPAY_STORE"), currencies: currencies.length > 0 ? currencies : ["btc"], ...keys };
}

function readDataDir(env: Environment, owner: ProcessOwner, embedded: boolean): string {
  const directory = resolve(dataDirectory({ env, uid: owner.uid, home: owner.home }));
  const room = longestSocketPath - longestSocketName.length - 1;
  if (embedded && Buffer.byteLength(directory) > room) {
    throw new ConfigError("DATA_DIR", `accepts a path of at most ${room} bytes, because it contains unix sockets`);
  }
  return directory;
}

/** Returns the proxy check target. Any IP address counts as private, because only workers check addresses. */
function readProxyCheck(read: EnvironmentReader, publicUrl: string): string {
  const value = read.text("PROXY_CHECK");
  if (value !== undefined && !parseTarget(value)) {
    throw new ConfigError("PROXY_CHECK", "accepts `host:port` of a service that proxies can reach");
  }
  if (value !== undefined) return value;
  const { protocol, hostname, port } = new URL(publicUrl);
  const isPrivate = isIP(hostname) !== 0 || hostname.startsWith("[") || isPrivateName(hostname);
  return isPrivate ? "example.com:443" : `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}

/** Reads the role. A single machine needs `all`, because no other process would take the remaining roles. */
function readRole(read: EnvironmentReader, hasOthers: boolean): ProcessRole {
  const role = read.oneOf("ROLE", ["all", "api", "jobs", "control"], "all");
  if (role !== "all" && !hasOthers) throw new ConfigError("ROLE", `accepts \`${role}\` only with REDIS_URL`);
  return role;
}

/** Reads the sealing keys. Gateways with DATABASE_URL require keys, because all gateways must share them. */
function readSecretsKeys(read: EnvironmentReader, isNeeded: boolean): SecretsKey[] {
  const keys = parseSecretsKeys(read.text("SECRETS_KEYS") ?? "");
  if (!isNeeded || keys.length > 0) return keys;
  throw new ConfigError("SECRETS_KEYS", "is required with DATABASE_URL: `id:key`, the key 32 random bytes in base64");
}

const isSender = (value: string): boolean => /^([^<>\r\n"]+ )?<[^\s@<>]+@[^\s@<>]+>$|^[^\s@<>]+@[^\s@<>]+$/.test(value);

const isAddress = (value: string): boolean => /^[^\s@<>,;]{1,64}@[^\s@<>,;]{1,255}$/.test(value);

/** Reads the e-mail settings. Gateways with DATABASE_URL need SMTP_URL for sign-up, unless SIGNUP is `closed`. */
function readMail(
  read: EnvironmentReader,
  isNeeded: boolean,
): Pick<Config, "smtpUrl" | "mailFrom" | "operatorEmail" | "signup"> {
  const signup = read.oneOf("SIGNUP", ["open", "closed"], "open");
  const smtpUrl = read.url("SMTP_URL", ["smtp:", "smtps:"]);
  const mailFrom = read.text("MAIL_FROM");
  if (mailFrom !== undefined && !isSender(mailFrom))
    throw new ConfigError("MAIL_FROM", "accepts an address such as `Pilothouse <mail@example.com>`");
  const operatorEmail = read.text("OPERATOR_EMAIL");
  if (operatorEmail !== undefined && !isAddress(operatorEmail))
    throw new ConfigError("OPERATOR_EMAIL", "accepts an address such as `operator@example.com`");
  const missing = smtpUrl === undefined ? "SMTP_URL" : mailFrom === undefined ? "MAIL_FROM" : undefined;
  if (isNeeded && missing !== undefined && (signup === "open" || smtpUrl !== undefined))
    throw new ConfigError(missing, "is required with DATABASE_URL, unless SIGNUP=closed and SMTP_URL is not set");
  return { smtpUrl, mailFrom: mailFrom ?? "Pilothouse <pilothouse@localhost>", operatorEmail, signup };
}

/** Reads the location of the workers' pods. Kubernetes sets the address of its API server in each pod. */
function readWorkerPods(read: EnvironmentReader): WorkerPods | undefined {
  const namespace = read.text("WORKER_PODS");
  if (namespace === undefined) return undefined;
  const host = read.text("KUBERNETES_SERVICE_HOST");
  if (!isPoolName(namespace) || host === undefined)
    throw new ConfigError("WORKER_PODS", "accepts a Kubernetes namespace, and only in a pod of the same cluster");
  return { namespace, host, port: readPort(read, "KUBERNETES_SERVICE_PORT", 443) };
}

function readSlaTarget(read: EnvironmentReader): number {
  const text = read.text("SLA_TARGET") ?? "99.9";
  if (!/^(\d{1,2}(\.\d{1,3})?|100)$/.test(text))
    throw new ConfigError("SLA_TARGET", "accepts percent such as `99.9`, with at most three decimals");
  return Number(text);
}

/** Reads the configuration. Throws a ConfigError for the first invalid variable. */
export function readConfig(
  given: Environment,
  owner: ProcessOwner = { uid: process.getuid?.() ?? -1, home: homedir(), hasTerminal: process.stderr.isTTY },
): Config {
  const env = withSecretFiles(given);
  const read = readerOf(env);
  const databaseUrl = read.url("DATABASE_URL", ["postgres:", "postgresql:"]);
  const embedded = databaseUrl === undefined;
  const redisUrl = readRedisUrl(read);
  if (redisUrl !== undefined && embedded) {
    throw new ConfigError("REDIS_URL", "is accepted only with DATABASE_URL: several gateways share both");
  }
  const role = readRole(read, redisUrl !== undefined);
  const servesClients = !embedded && role !== "control";
  const port = readPort(read, "PORT", 8080);
  const tls = readTls(read);
  const publicUrl = read.url("PUBLIC_URL", ["http:", "https:"]) ?? `${tls ? "https" : "http"}://localhost:${port}`;
  // The maximum is the number of uids available to a worker (workers/isolation/uid-range.ts).
  read.integer("WORKER_SLOTS", { min: 1, max: 256, absent: 0 });
  // Used by the embedded worker only, but checked here, so that the gateway reports an invalid value.
  read.list("EGRESS_ALLOW", "CIDRs and host:port", isAddressException);
  return {
    embedded,
    host: read.text("HOST") ?? (embedded ? "127.0.0.1" : "0.0.0.0"),
    port,
    grpcPort: readPort(read, "GRPC_PORT", 8081),
    internalPort: readPort(read, "INTERNAL_PORT", 8082),
    fleetPort: readPort(read, "FLEET_PORT", 8083),
    publicUrl,
    errorsBase: read.url("ERRORS_BASE", ["http:", "https:"]) ?? `${publicUrl}/errors`,
    dataDir: readDataDir(env, owner, embedded),
    databaseUrl,
    migrates: read.oneOf("MIGRATE", ["on", "off"], "on") === "on",
    redisUrl,
    role,
    workerToken: readWorkerToken(read, !embedded && (redisUrl === undefined || role === "control")),
    workerPods: readWorkerPods(read),
    tls,
    fleetTls: readFleetTls(read),
    trustedProxies: read.list("TRUSTED_PROXIES", "addresses and CIDRs", isNetwork),
    corsOrigins: read.list("CORS_ORIGINS", "origins such as `https://app.example.com`", isOrigin),
    embedOrigins: read.list("EMBED_ORIGINS", "origins such as `https://app.example.com`", isOrigin),
    liveKit: readLiveKit(read),
    queueMs: read.integer("QUEUE_MS", { min: 0, max: 600_000, absent: 10_000 }),
    shutdownDelayMs: read.integer("SHUTDOWN_DELAY", { min: 0, max: 600, absent: 0 }) * 1_000,
    clientBufferBytes: read.integer("CLIENT_BUFFER_MIB", { min: 1, max: 65_536, absent: 256 }) * 2 ** 20,
    proxyCheck: readProxyCheck(read, publicUrl),
    webhookAllow: read.list("WEBHOOK_ALLOW", "CIDRs and host:port", isAddressException),
    llmAllow: read.list("LLM_ALLOW", "CIDRs and host:port", isAddressException),
    llmAddresses: readLlmAddresses(read),
    outgoingProxy: read.url("OUTGOING_PROXY", ["http:", "https:"]),
    outgoingCaFile: read.text("OUTGOING_CA_FILE"),
    bundledLlm: readBundledLlm(read),
    secretsKeys: readSecretsKeys(read, servesClients),
    ...readMail(read, servesClients),
    tiersFile: read.text("TIERS_FILE"),
    prices: readPrices(read),
    stripe: readStripe(read),
    btcPay: readBtcPay(read),
    slaTarget: readSlaTarget(read),
    isolation: readIsolation(read),
    logLevel: read.oneOf("LOG_LEVEL", logLevels, embedded && owner.hasTerminal ? "warn" : "info"),
    accessLog: read.oneOf("ACCESS_LOG", ["on", "off"], "off") === "on",
    traces: readTraces(read),
  };
}
