import { randomUUID } from "node:crypto";
import { type Bus, type BusChannel, createLocalBus } from "../bus.ts";
import type { Redis } from "./redis.ts";

/** The one channel of Redis that carries all of the bus. */
const redisChannel = "pilothouse:bus";

/**
 * Makes the bus of several gateways. A gateway hears its own messages at once, and so also while Redis is away; what the
 * others miss meanwhile they find by looking: events within a second, keys and sessions when their caches are 5 s old.
 */
export function createRedisBus(redis: Redis): Bus {
  const local = createLocalBus();
  const self = randomUUID();
  redis.listen(redisChannel, (text) => {
    const [from, channel, ...message] = text.split(" ");
    // The boundary at which a channel and its message belong together again: publish below has sent them. To a channel
    // that only gateways of another release know nobody listens.
    if (from !== self) local.publish(channel as BusChannel, message.join(" ") as never);
  });
  return {
    subscribe: local.subscribe,
    publish(channel, message) {
      local.publish(channel, message);
      void redis.ask("bus", (client) => client.publish(redisChannel, `${self} ${channel} ${message}`));
    },
  };
}
