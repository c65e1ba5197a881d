import { createClient } from "@redis/client";
import { Counter, Gauge, type Registry } from "prom-client";
import { unlessLate, within } from "../deadline.ts";
import type { Log } from "../log.ts";

/** Milliseconds. */
const times = {
  /** What a request may pay for a Redis that hangs; a healthy one answers within 1. */
  command: 50,
  connect: 2_000,
  /** Shows that a Redis that was too slow answers again. */
  ping: 1_000,
  /** A connection on which nothing has come or gone for this long, pings included, is dead. */
  silence: 5_000,
  firstRetry: 50,
  longestRetry: 1_000,
  /** What a start waits for Redis before it goes on without. */
  start: 2_000,
};

/**
 * So many commands in a row without an answer are a hang; one alone, with those that were under way beside it, is a machine
 * that was busy for a moment.
 */
const timeoutsOfHang = 3;

/** Commands that may be under way at once; beyond that Redis counts as away. */
const longestQueue = 10_000;

/** What a gateway asks of Redis. */
export type RedisClient = ReturnType<typeof makeClient>;

/** What a request had to do without. */
export type RedisUse = "bus" | "buckets" | "seats";

/** A Redis that may be away: then whoever asks is told so at once, and does without. */
export interface Redis {
  /** False from the first command that failed, or the third in a row without an answer, until Redis answers again. */
  readonly isUp: boolean;
  /** Asks for something; undefined when Redis is away, or has not answered within 50 ms. */
  ask<T>(use: RedisUse, command: (client: RedisClient) => Promise<T>): Promise<T | undefined>;
  /** Counts a request that did without. */
  missed(use: RedisUse): void;
  /** Calls the listener with every message of a channel, whenever Redis is there, until the Redis is stopped. */
  listen(channel: string, listener: (message: string) => void): void;
  /** Connects. Resolves when that is done, and after 2 s in any case: a gateway runs without Redis, too. */
  start(): Promise<void>;
  stop(): void;
}

function makeClient(url: string) {
  return createClient({
    url,
    disableOfflineQueue: true,
    commandsQueueMaxLength: longestQueue,
    pingInterval: times.ping,
    socket: {
      connectTimeout: times.connect,
      socketTimeout: times.silence,
      reconnectStrategy: (retries) => Math.min(times.firstRetry * 2 ** Math.min(retries, 10), times.longestRetry),
    },
  });
}

function makeMetrics(registry: Registry) {
  const registers = [registry];
  return {
    up: new Gauge({ name: "pilothouse_redis_up", help: "1 while Redis answers, else 0.", registers }),
    outages: new Counter({ name: "pilothouse_redis_outages_total", help: "Times that Redis went away.", registers }),
    missed: new Counter({
      name: "pilothouse_redis_missed_total",
      help: "Bus messages that were not sent, and requests that drew or were counted locally, for want of Redis.",
      labelNames: ["use"],
      registers,
    }),
  };
}

/** Redis has not answered in time. */
class RedisTimeout extends Error {
  override readonly name = "RedisTimeout";
}

export interface RedisOptions {
  readonly url: string;
  readonly log: Log;
  readonly registry: Registry;
  /** Milliseconds that a command may take. */
  readonly patience?: number;
}

/** Makes the connection of a gateway, for commands and messages alike (RESP3). */
export function createRedis({ url, log, registry, patience = times.command }: RedisOptions): Redis {
  const client = makeClient(url);
  const metrics = makeMetrics(registry);
  const listeners = new Map<string, (message: string) => void>();
  const subscribed = new Set<string>();
  const { promise: isReady, resolve: becomeReady } = Promise.withResolvers<void>();
  let isUp = false;
  let isStopped = false;
  let timeoutsInARow = 0;
  let lastTimeout = 0;
  let downSince: number | undefined;
  metrics.up.set(0);

  /** Says once per outage that Redis is away. */
  function goDown(error: unknown): void {
    isUp = false;
    if (downSince !== undefined || isStopped) return;
    downSince = performance.now();
    metrics.up.set(0);
    metrics.outages.inc();
    log.warn({ err: error }, "Redis is away: requests go on with local limits and without the bus");
  }

  function comeUp(): void {
    if (isUp || isStopped || !client.isReady) return;
    isUp = true;
    timeoutsInARow = 0;
    metrics.up.set(1);
    if (downSince !== undefined) log.info({ after_ms: Math.round(performance.now() - downSince) }, "Redis is back");
    downSince = undefined;
  }

  /** Subscribes to what is new; the client itself subscribes again after it has reconnected. */
  async function subscribe(): Promise<void> {
    for (const [channel, listener] of listeners) {
      if (subscribed.has(channel)) continue;
      await client.subscribe(channel, listener);
      subscribed.add(channel);
    }
  }

  client.on("error", goDown);
  client.on("ping-interval", comeUp);
  client.on("ready", () => {
    comeUp();
    subscribe().then(becomeReady, goDown);
  });

  return {
    get isUp() {
      return isUp;
    },
    async ask(use, command) {
      if (isUp) {
        const asked = performance.now();
        try {
          // The client's own timeout covers only what it has not sent yet.
          const answer = await unlessLate(command(client), patience, () => {
            throw new RedisTimeout(`no answer within ${patience} ms`);
          });
          timeoutsInARow = 0;
          return answer;
        } catch (error) {
          if (asked >= lastTimeout) {
            timeoutsInARow += 1;
            lastTimeout = performance.now();
          }
          if (!(error instanceof RedisTimeout) || timeoutsInARow >= timeoutsOfHang) goDown(error);
        }
      }
      metrics.missed.inc({ use });
      return undefined;
    },
    missed: (use) => metrics.missed.inc({ use }),
    listen(channel, listener) {
      listeners.set(channel, listener);
    },
    async start() {
      // Retries for ever; what fails on the way is told by events.
      client.connect().catch(() => undefined);
      await within(isReady, times.start, undefined);
      if (!isUp) goDown(new Error("no connection yet"));
    },
    stop() {
      isStopped = true;
      isUp = false;
      client.destroy();
    },
  };
}
