import { EventEmitter } from "node:events";
import { sleep } from "./bounded-wait.ts";

/** What is told to every gateway. The bus only wakes and evicts: whoever misses a message finds the truth in PostgreSQL. */
export interface BusMessages {
  /** Rows were added to `events`. */
  events: "";
  /** Identifier of a session that has ended. */
  "session-ended": string;
  /** Identifier of a session whose status changed without its end. */
  "session-changed": string;
  /** Identifier of a turn that has ended, or has something to read. */
  "turn-changed": string;
  /** Identifier of what ends bearers or changes what they may do: a key, a login, a user, an account. */
  "bearer-changed": string;
  /** Kind and lanes of work that was added, a line each. */
  work: string;
  /** The version of the status that there is to see. */
  "status-changed": `${bigint}`;
  /** Identifier of an ended session whose profile waits on its worker to be saved. */
  "profile-offered": string;
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

/** Resolves with the next message of a channel, after so many milliseconds, or when the signal aborts. */
export function nextMessage(bus: Bus, channel: BusChannel, ms: number, signal: AbortSignal): Promise<void> {
  const woken = new AbortController();
  const unsubscribe = bus.subscribe(channel, () => woken.abort());
  return sleep(ms, AbortSignal.any([woken.signal, signal])).finally(unsubscribe);
}

/** The bus of a lone gateway. */
export function createLocalBus(): Bus {
  const emitter = new EventEmitter().setMaxListeners(0);
  // An emitter throws at an event called "error" that nobody hears: no channel is called by its bare name.
  const nameOf = (channel: string): string => `channel ${channel}`;
  return {
    publish(channel, message) {
      emitter.emit(nameOf(channel), message);
    },
    subscribe(channel, listener) {
      emitter.on(nameOf(channel), listener);
      return () => emitter.off(nameOf(channel), listener);
    },
  };
}
