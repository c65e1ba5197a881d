import { isIP } from "node:net";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { dataDirectory } from "./data-directory.ts";
import { ConfigError, type Environment, type EnvironmentReader, readerOf } from "./environment.ts";
import { type FleetTlsFiles, readFleetTls } from "./grpc/fleet-tls.ts";
import { type IsolationConfig, readIsolation } from "./isolation.ts";
import { type BundledLlmConfig, type LlmAddresses, readBundledLlm, readLlmAddresses } from "./llm-config.ts";
import { type LogLevel, logLevels } from "./log.ts";
import { isAddressException, isNetwork, isPrivateName, parseTarget } from "./outgoing/address-rules.ts";
import { type Prices, readPrices } from "./prices.ts";
import { parseSecretsKeys, type SecretsKey } from "./secrets/secrets-keys.ts";
import { readWorkerToken } from "./worker-token.ts";

/** Files of a certificate and its key. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** A LiveKit server, and a key of it with its secret. */
export interface LiveKitConfig {
  readonly url: string;
  readonly key: string;
  readonly secret: string;
}

/** An account with Stripe. */
export interface StripeConfig {
  readonly url: string;
  readonly secretKey: string;
  /** Signs what Stripe tells us. */
  readonly webhookSecret: string;
}

/** A store of a BTCPay Server. */
export interface BtcPayConfig {
  readonly url: string;
  readonly apiKey: string;
  readonly store: string;
  /** Signs what it tells us. */
  readonly webhookSecret: string;
  /** The cryptocurrencies that it takes, in lower case. */
  readonly currencies: readonly string[];
}

/**
 * What a process of a service on several machines does: `control` keeps workers and ends sessions, `api` serves clients,
 * `jobs` works in the background, and `all` does what those two do. On one machine it is always `all`: see gateway/main.ts.
 */
export type Role = "all" | "api" | "jobs" | "control";

/** Everything that the environment says to a gateway. */
export interface Config {
  /** No DATABASE_URL: PostgreSQL and one worker are run by this process. */
  readonly embedded: boolean;
  readonly host: string;
  readonly port: number;
  readonly grpcPort: number;
  readonly internalPort: number;
  readonly fleetPort: number;
  /** Without a slash at its end. */
  readonly publicUrl: string;
  /** Without a slash at its end. */
  readonly errorsBase: string;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  readonly redisUrl: string | undefined;
  readonly role: Role;
  readonly workerToken: string | undefined;
  readonly tls: TlsFiles | undefined;
  readonly fleetTls: FleetTlsFiles | undefined;
  /** Addresses and CIDRs of proxies whose X-Forwarded-* is believed. */
  readonly trustedProxies: readonly string[];
  readonly corsOrigins: readonly string[];
  /** Origins whose pages may have the live page in a frame. */
  readonly embedOrigins: readonly string[];
  /** The media server over which sessions are shown as well, if there is one. */
  readonly liveKit: LiveKitConfig | undefined;
  /** Milliseconds that a create waits for a slot. */
  readonly queueMs: number;
  /** Bytes that the gateway holds for clients at most: bodies, messages, unread answers. */
  readonly clientBufferBytes: number;
  /** `host:port` that customers' proxies are asked for before a session begins with one. */
  readonly proxyCheck: string;
  /** CIDRs and `host:port` that webhooks may be sent to although private, and without TLS. */
  readonly webhookAllow: readonly string[];
  /** CIDRs and `host:port` that LLM providers may be at although private, and without TLS. */
  readonly llmAllow: readonly string[];
  /** Where providers are reached when not at their usual addresses: an operator's proxy. */
  readonly llmAddresses: LlmAddresses;
  /** The LLM that turns of accounts without a key of their own run on, if the operator pays for one. */
  readonly bundledLlm: BundledLlmConfig | undefined;
  /** Keys that seal what is kept secret, the newest first. None, in embedded mode alone: one of our own in DATA_DIR. */
  readonly secretsKeys: readonly SecretsKey[];
  /** Where mails go; in embedded mode none means that they stay in the outbox. */
  readonly smtpUrl: string | undefined;
  /** From whom mails come. */
  readonly mailFrom: string;
  /** Who is told of what a person has to look at, such as a payment that is too little. */
  readonly operatorEmail: string | undefined;
  /** Whether people can open accounts by themselves. */
  readonly signup: "open" | "closed";
  /** What tiers cost. */
  readonly prices: Prices;
  /** Who takes payments by card. */
  readonly stripe: StripeConfig | undefined;
  /** Who takes payments in cryptocurrencies. */
  readonly btcPay: BtcPayConfig | undefined;
  /** How much of the time the service is promised to be up, in per cent. */
  readonly slaTarget: number;
  /** How the worker that this process starts confines its browsers. */
  readonly isolation: IsolationConfig;
  readonly logLevel: LogLevel;
}

/** Who runs the process; tests say it themselves. */
export interface ProcessOwner {
  readonly uid: number;
  readonly home: string;
}

/** Longest name of a unix socket, its closing zero byte not counted (sockaddr_un of Linux has 108 bytes, macOS 104). */
const longestSocketPath = 103;

/** The longest name of a socket below DATA_DIR. */
const longestSocketName = join("postgres", "run", ".s.PGSQL.5432");

const isOrigin = (item: string): boolean => URL.canParse(item) && new URL(item).origin === item;

function readPort(read: EnvironmentReader, name: string, absent: number): number {
  return read.integer(name, { min: 0, max: 65_535, absent });
}

function readTls(read: EnvironmentReader): TlsFiles | undefined {
  const files = read.together("TLS_CERT", "TLS_KEY");
  return files && { cert: files.TLS_CERT, key: files.TLS_KEY };
}

/** Workers are told of the address alone. */
function readLiveKit(read: EnvironmentReader): LiveKitConfig | undefined {
  const url = read.url("LIVEKIT_URL", ["ws:", "wss:"]);
  const given = (name: string): string => {
    const value = read.text(name);
    if (value === undefined)
      throw new ConfigError(name, "is needed beside LIVEKIT_URL: a key of that server, and its secret");
    return value;
  };
  return url === undefined ? undefined : { url, key: given("LIVEKIT_API_KEY"), secret: given("LIVEKIT_API_SECRET") };
}

/** Reads variables that are needed beside another one. */
function neededBeside(read: EnvironmentReader, first: string): (name: string) => string {
  return (name) => {
    const value = read.text(name);
    if (value === undefined) throw new ConfigError(name, `is needed beside ${first}`);
    return value;
  };
}

function readStripe(read: EnvironmentReader): StripeConfig | undefined {
  const secretKey = read.text("STRIPE_SECRET_KEY");
  const url = read.url("STRIPE_URL", ["http:", "https:"]) ?? "https://api.stripe.com";
  if (secretKey === undefined) return undefined;
  return { url, secretKey, webhookSecret: neededBeside(read, "STRIPE_SECRET_KEY")("STRIPE_WEBHOOK_SECRET") };
}

function readBtcPay(read: EnvironmentReader): BtcPayConfig | undefined {
  const url = read.url("BTCPAY_URL", ["http:", "https:"]);
  const isCurrency = (item: string): boolean => /^[a-z0-9]{2,12}$/.test(item);
  const currencies = read.list("CRYPTO_CURRENCIES", "cryptocurrencies in lower case, such as `btc`", isCurrency);
  if (url === undefined) return undefined;
  const needed = neededBeside(read, "BTCPAY_URL");
  const keys = { apiKey: needed("BTCPAY_API_KEY"), webhookSecret: needed("BTCPAY_WEBHOOK_SECRET") };
  return { url, store: needed("BTCPAY_STORE"), currencies: currencies.length > 0 ? currencies : ["btc"], ...keys };
}

function readDataDir(env: Environment, owner: ProcessOwner, embedded: boolean): string {
  const directory = resolve(dataDirectory({ env, uid: owner.uid, home: owner.home }));
  const room = longestSocketPath - longestSocketName.length - 1;
  if (embedded && Buffer.byteLength(directory) > room) {
    throw new ConfigError("DATA_DIR", `accepts a path of at most ${room} bytes, since unix sockets are kept below it`);
  }
  return directory;
}

/** Which addresses are public workers know: any address is taken for a private one. */
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

/** A service on one machine has no other processes to leave the rest of the work to. */
function readRole(read: EnvironmentReader, hasOthers: boolean): Role {
  const role = read.oneOf("ROLE", ["all", "api", "jobs", "control"], "all");
  if (role !== "all" && !hasOthers) throw new ConfigError("ROLE", `accepts \`${role}\` only beside REDIS_URL`);
  return role;
}

/** A gateway that made a key of its own could not read what the next one has sealed. */
function readSecretsKeys(read: EnvironmentReader, isNeeded: boolean): SecretsKey[] {
  const keys = parseSecretsKeys(read.text("SECRETS_KEYS") ?? "");
  if (!isNeeded || keys.length > 0) return keys;
  throw new ConfigError("SECRETS_KEYS", "is needed beside DATABASE_URL: `id:key`, the key 32 random bytes in base64");
}

const isSender = (value: string): boolean => /^([^<>\r\n"]+ )?<[^\s@<>]+@[^\s@<>]+>$|^[^\s@<>]+@[^\s@<>]+$/.test(value);

const isAddress = (value: string): boolean => /^[^\s@<>,;]{1,64}@[^\s@<>,;]{1,255}$/.test(value);

/** Whoever signs up needs a mail; who deploys without may close sign-up. */
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
    throw new ConfigError(missing, "is needed beside DATABASE_URL, or SIGNUP=closed without SMTP_URL");
  return { smtpUrl, mailFrom: mailFrom ?? "Pilothouse <pilothouse@localhost>", operatorEmail, signup };
}

function readSlaTarget(read: EnvironmentReader): number {
  const text = read.text("SLA_TARGET") ?? "99.9";
  if (!/^(\d{1,2}(\.\d{1,3})?|100)$/.test(text))
    throw new ConfigError("SLA_TARGET", "accepts per cent such as `99.9`, with three digits behind the point at most");
  return Number(text);
}

/** Reads the configuration; throws a ConfigError for the first variable with a value that it does not accept. */
export function readConfig(
  env: Environment,
  owner: ProcessOwner = { uid: process.getuid?.() ?? -1, home: homedir() },
): Config {
  const read = readerOf(env);
  const databaseUrl = read.url("DATABASE_URL", ["postgres:", "postgresql:"]);
  const embedded = databaseUrl === undefined;
  const redisUrl = read.url("REDIS_URL", ["redis:", "rediss:"]);
  if (redisUrl !== undefined && embedded) {
    throw new ConfigError("REDIS_URL", "is accepted only beside DATABASE_URL: several gateways share both");
  }
  const role = readRole(read, redisUrl !== undefined);
  const servesClients = !embedded && role !== "control";
  const port = readPort(read, "PORT", 8080);
  const tls = readTls(read);
  const publicUrl = read.url("PUBLIC_URL", ["http:", "https:"]) ?? `${tls ? "https" : "http"}://localhost:${port}`;
  // As many as a worker has slots for (workers/isolation/uid-range.ts).
  read.integer("WORKER_SLOTS", { min: 1, max: 256, absent: 0 });
  // The worker that this process starts reads it; a wrong one is refused where somebody looks.
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
    redisUrl,
    role,
    workerToken: readWorkerToken(read, !embedded && (redisUrl === undefined || role === "control")),
    tls,
    fleetTls: readFleetTls(read),
    trustedProxies: read.list("TRUSTED_PROXIES", "addresses and CIDRs", isNetwork),
    corsOrigins: read.list("CORS_ORIGINS", "origins such as `https://app.example.com`", isOrigin),
    embedOrigins: read.list("EMBED_ORIGINS", "origins such as `https://app.example.com`", isOrigin),
    liveKit: readLiveKit(read),
    queueMs: read.integer("QUEUE_MS", { min: 0, max: 600_000, absent: 10_000 }),
    clientBufferBytes: read.integer("CLIENT_BUFFER_MIB", { min: 1, max: 65_536, absent: 256 }) * 2 ** 20,
    proxyCheck: readProxyCheck(read, publicUrl),
    webhookAllow: read.list("WEBHOOK_ALLOW", "CIDRs and host:port", isAddressException),
    llmAllow: read.list("LLM_ALLOW", "CIDRs and host:port", isAddressException),
    llmAddresses: readLlmAddresses(read),
    bundledLlm: readBundledLlm(read),
    secretsKeys: readSecretsKeys(read, servesClients),
    ...readMail(read, servesClients),
    prices: readPrices(read),
    stripe: readStripe(read),
    btcPay: readBtcPay(read),
    slaTarget: readSlaTarget(read),
    isolation: readIsolation(read),
    logLevel: read.oneOf("LOG_LEVEL", logLevels, "info"),
  };
}
