import { createRequire } from "node:module";
import { sleep } from "../bounded-wait.ts";
import { raceSignal } from "../deadline.ts";
import { parseSentinelUrl, type SentinelUrl } from "./sentinel-url.ts";

/** Milliseconds. */
const times = {
  connect: 2_000,
  /** Interval of pings, which detect that a slow Redis responds again. */
  ping: 1_000,
  /** A connection without traffic for this long, including pings, is dead. */
  silence: 5_000,
  firstRetry: 50,
  longestRetry: 1_000,
};

/** Maximum number of pending commands. If more are pending, Redis counts as down. */
const longestQueue = 10_000;

export type RedisClient = ReturnType<typeof makeClient>;

/** Loads the package on demand, because loading costs a gateway 100 ms of CPU and 9 MB. */
function loadRedis(): typeof import("redis") {
  return createRequire(import.meta.url)("redis");
}

function makeClient(url: string) {
  return loadRedis().createClient({
    url,
    disableOfflineQueue: true,
    commandsQueueMaxLength: longestQueue,
    pingInterval: times.ping,
    socket: { connectTimeout: times.connect, socketTimeout: times.silence, reconnectStrategy: false },
  });
}

/** Connects and settles like `use`, unless the connection fails or the signal aborts first. */
async function withClient<T>(url: string, signal: AbortSignal, use: (client: RedisClient) => Promise<T>): Promise<T> {
  const client = makeClient(url);
  const { promise: failure, reject } = Promise.withResolvers<never>();
  client.on("error", reject);
  try {
    return await raceSignal(Promise.race([failure, client.connect().then(() => use(client))]), signal);
  } finally {
    client.destroy();
  }
}

/** Returns the URL of the primary that a sentinel names. */
function querySentinel(sentinel: string, { name, urlOf }: SentinelUrl, signal: AbortSignal): Promise<string> {
  return withClient(sentinel, signal, async (client) => {
    const address = await client.sendCommand(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", name]);
    const [host, port] = Array.isArray(address) ? address.map(String) : [];
    if (!host || !port)
      throw new Error(`expected a primary named ${name} from the sentinel ${new URL(sentinel).host}, got none`);
    return urlOf({ host, port });
  });
}

/** Returns the URL of the primary. Queries the sentinels in order. Each attempt starts with the next sentinel. */
async function findPrimary(named: SentinelUrl, attempt: number, signal: AbortSignal): Promise<string> {
  const first = attempt % named.sentinels.length;
  const failures: unknown[] = [];
  for (const sentinel of [...named.sentinels.slice(first), ...named.sentinels.slice(0, first)]) {
    try {
      return await querySentinel(sentinel, named, signal);
    } catch (error) {
      failures.push(error);
    }
  }
  throw new AggregateError(failures, "no sentinel returned the primary of Redis");
}

/** Throws if the server is a replica or part of a cluster. */
async function expectPrimary(client: RedisClient): Promise<void> {
  const { mode, role } = await client.hello();
  if (mode === "cluster") throw new Error("Redis Cluster is not supported: use one Redis, or Redis Sentinel");
  // The address that a sentinel reports may be outdated.
  if (role === "replica") throw new Error("expected the primary of Redis, got a replica");
}

export interface RedisConnectionOptions {
  /** `redis:`, `rediss:`, or the same with `+sentinel`. */
  readonly url: string;
  /** Aborts to end the connection. */
  readonly signal: AbortSignal;
  /** Prepares a new connection. */
  onConnect(client: RedisClient): Promise<void>;
  /** Called after each reply to a ping. */
  onReply(): void;
  /** Called when a connection fails, or when the primary was not found or refuses the connection. */
  onFailure(error: unknown): void;
}

/** Keeps a connection (RESP3) to the primary until the signal aborts. */
export async function keepConnected(options: RedisConnectionOptions): Promise<void> {
  const { url, signal, onConnect, onReply, onFailure } = options;
  const named = parseSentinelUrl(url);
  let attempts = 0;
  let failuresInARow = 0;
  while (!signal.aborted) {
    try {
      const primary = named ? await findPrimary(named, attempts++, signal) : url;
      await withClient(primary, signal, async (client) => {
        await expectPrimary(client);
        await onConnect(client);
        failuresInARow = 0;
        client.on("ping-interval", onReply);
        return new Promise<never>(() => undefined);
      });
    } catch (error) {
      onFailure(error);
    }
    await sleep(Math.min(times.firstRetry * 2 ** Math.min(failuresInARow++, 10), times.longestRetry), signal);
  }
}
