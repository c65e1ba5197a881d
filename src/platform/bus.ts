import { EventEmitter } from "node:events";

/** What is told to every gateway. The bus only wakes and evicts: whoever misses a message finds the truth in PostgreSQL. */
export interface BusMessages {
  /** Rows were added to `events`. */
  events: "";
  /** Identifier of a session that has ended. */
  "session-ended": string;
  /** Identifier of a session whose status changed without its end. */
  "session-changed": string;
  /** Identifier of an API key that was revoked or changed. */
  "key-changed": string;
  /** A slot of a worker may have become free. */
  capacity: "";
}

/** A channel of the bus. */
export type BusChannel = keyof BusMessages;

/** Tells all gateways something at once, at most once. */
export interface Bus {
  publish<C extends BusChannel>(channel: C, message: BusMessages[C]): void;
  /** Calls the listener with every message until the returned function is called. */
  subscribe<C extends BusChannel>(channel: C, listener: (message: BusMessages[C]) => void): () => void;
}

/** The bus of a lone gateway. */
export function createLocalBus(): Bus {
  const emitter = new EventEmitter().setMaxListeners(0);
  return {
    publish(channel, message) {
      emitter.emit(channel, message);
    },
    subscribe(channel, listener) {
      emitter.on(channel, listener);
      return () => emitter.off(channel, listener);
    },
  };
}
