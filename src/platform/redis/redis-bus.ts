import { randomUUID } from "node:crypto";
import { type Bus, type BusChannel, createLocalBus } from "../bus.ts";
import type { Redis } from "./redis.ts";

/** Redis channel that carries the whole bus. */
const redisChannel = "pilothouse:bus";

/**
 * Creates a bus between gateways. Local subscribers receive messages directly. While Redis is down, other gateways find
 * changes by polling (events, within a second) or by cache expiry (keys and sessions, within 5 s).
 */
export function createRedisBus(redis: Redis): Bus {
  const local = createLocalBus();
  const self = randomUUID();
  redis.listen(redisChannel, (text) => {
    const [from, channel, ...message] = text.split(" ");
    // Channel and message were sent by `publish` below. Channels known only to other releases have no listeners.
    if (from !== self) local.publish(channel as BusChannel, message.join(" ") as never);
  });
  const bus: Bus = {
    subscribe: local.subscribe,
    publish(channel, message) {
      local.publish(channel, message);
      void redis.run("bus", (client) => client.publish(redisChannel, `${self} ${channel} ${message}`));
    },
  };
  redis.onRecovery(() => bus.publish("resumed", ""));
  return bus;
}
