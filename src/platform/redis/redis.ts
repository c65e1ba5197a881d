import { Counter, Gauge, type Registry } from "prom-client";
import { unlessLate, within } from "../deadline.ts";
import type { Log } from "../log.ts";
import { keepConnected, type RedisClient } from "./redis-connection.ts";

/** Milliseconds. */
const times = {
  /** Maximum delay of a request if Redis hangs. Normal responses take less than 1 ms. */
  command: 50,
  /** Maximum wait at startup. */
  start: 2_000,
};

/** Consecutive timeouts that indicate a hang. Concurrent timeouts count as one: the machine may have been busy. */
const timeoutsUntilDown = 3;

/** Use of Redis, as labelled in the metrics. */
export type RedisUse = "bus" | "buckets" | "seats";

/** Redis connection. While Redis is down, commands return at once, and callers continue without Redis. */
export interface Redis {
  /**
   * False before the first connection, and from a failed connection, a failed command or the third consecutive timeout
   * until Redis responds again.
   */
  readonly isUp: boolean;
  /** Runs a command. Resolves with undefined if Redis is down, fails or does not respond within 50 ms. */
  run<T>(use: RedisUse, command: (client: RedisClient) => Promise<T>): Promise<T | undefined>;
  /** Counts a request that was served without Redis. */
  countMissed(use: RedisUse): void;
  /** Calls the listener with every message of a channel. Call `listen` before `start`. */
  listen(channel: string, listener: (message: string) => void): void;
  /** Calls the listener whenever Redis responds again after an outage. */
  onRecovery(listener: () => void): void;
  /** Connects. Resolves after 2 s at the latest, because a gateway also works without Redis. */
  start(): Promise<void>;
  stop(): void;
}

function makeMetrics(registry: Registry) {
  const registers = [registry];
  return {
    up: new Gauge({ name: "pilothouse_redis_up", help: "1 while Redis responds, else 0.", registers }),
    outages: new Counter({ name: "pilothouse_redis_outages_total", help: "Outages of Redis.", registers }),
    missed: new Counter({
      name: "pilothouse_redis_missed_total",
      help: "Bus messages not sent, and requests limited locally, because Redis was down.",
      labelNames: ["use"],
      registers,
    }),
  };
}

/** Thrown if Redis does not respond in time. */
class RedisTimeout extends Error {
  override readonly name = "RedisTimeout";
}

export interface RedisOptions {
  readonly url: string;
  readonly log: Log;
  readonly registry: Registry;
  /** Timeout of commands in milliseconds. */
  readonly timeoutMs?: number;
}

/** Creates the connection of a gateway, for commands and subscriptions. */
export function createRedis({ url, log, registry, timeoutMs = times.command }: RedisOptions): Redis {
  const metrics = makeMetrics(registry);
  const listeners = new Map<string, (message: string) => void>();
  const recoveries = new Set<() => void>();
  const stopping = new AbortController();
  const { signal } = stopping;
  const { promise: isReady, resolve: becomeReady } = Promise.withResolvers<void>();
  /** The last connection. */
  let client: RedisClient | undefined;
  let isUp = false;
  let timeoutsInARow = 0;
  let lastTimeout = 0;
  let downSince: number | undefined;
  metrics.up.set(0);

  /** Marks Redis as down. Logs once per outage. */
  function markDown(error: unknown): void {
    isUp = false;
    if (downSince !== undefined || signal.aborted) return;
    downSince = performance.now();
    metrics.up.set(0);
    metrics.outages.inc();
    log.warn({ err: error }, "Redis is down: using local limits, without the bus");
  }

  function markUp(): void {
    if (isUp || signal.aborted) return;
    isUp = true;
    timeoutsInARow = 0;
    metrics.up.set(1);
    if (downSince === undefined) return;
    log.info({ after_ms: Math.round(performance.now() - downSince) }, "Redis is up again");
    downSince = undefined;
    for (const listener of recoveries) listener();
  }

  async function onConnect(connected: RedisClient): Promise<void> {
    for (const [channel, listener] of listeners) await connected.subscribe(channel, listener);
    client = connected;
    markUp();
    becomeReady();
  }

  return {
    get isUp() {
      return isUp;
    },
    async run(use, command) {
      if (isUp && client) {
        const sentAt = performance.now();
        try {
          // The client's own timeout covers only unsent commands.
          const answer = await unlessLate(command(client), timeoutMs, () => {
            throw new RedisTimeout(`no response within ${timeoutMs} ms`);
          });
          timeoutsInARow = 0;
          return answer;
        } catch (error) {
          if (sentAt >= lastTimeout) {
            timeoutsInARow += 1;
            lastTimeout = performance.now();
          }
          if (!(error instanceof RedisTimeout) || timeoutsInARow >= timeoutsUntilDown) markDown(error);
        }
      }
      metrics.missed.inc({ use });
      return undefined;
    },
    countMissed: (use) => metrics.missed.inc({ use }),
    listen(channel, listener) {
      listeners.set(channel, listener);
    },
    onRecovery: (listener) => void recoveries.add(listener),
    async start() {
      void keepConnected({ url, signal, onConnect, onReply: markUp, onFailure: markDown });
      await within(isReady, times.start, undefined);
      if (!isUp) markDown(new Error("no connection yet"));
    },
    stop() {
      stopping.abort();
      isUp = false;
    },
  };
}
