import { randomUUID } from "node:crypto";
import { type Bus, type BusChannel, createLocalBus } from "./bus.ts";
import type { Redis } from "./redis.ts";

/** The one channel of Redis that carries all of the bus. */
const redisChannel = "pilothouse:bus";

const channels: readonly BusChannel[] = ["events", "session-ended", "session-changed", "key-changed", "capacity"];

interface Envelope {
  readonly from: string;
  readonly channel: BusChannel;
  readonly message: string;
}

/** Reads what came from Redis; undefined for what no gateway of this release can have sent. */
function readEnvelope(text: string): Envelope | undefined {
  const [from = "", name = "", ...rest] = text.split(" ");
  const channel = channels.find((known) => known === name);
  return channel && { from, channel, message: rest.join(" ") };
}

/**
 * Makes the bus of several gateways. A gateway hears its own messages at once, and so also while Redis is away; what the
 * others miss meanwhile they find by looking: events within a second, keys and sessions when their caches are 5 s old.
 */
export function createRedisBus(redis: Redis): Bus {
  const local = createLocalBus();
  const self = randomUUID();
  redis.listen(redisChannel, (text) => {
    const envelope = readEnvelope(text);
    // The boundary at which a channel and its message belong together again: they were sent by publish below.
    if (envelope && envelope.from !== self) local.publish(envelope.channel, envelope.message as never);
  });
  return {
    subscribe: local.subscribe,
    publish(channel, message) {
      local.publish(channel, message);
      void redis.ask("bus", (client) => client.publish(redisChannel, `${self} ${channel} ${message}`));
    },
  };
}
