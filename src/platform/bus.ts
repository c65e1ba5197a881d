import { EventEmitter } from "node:events";
import { sleep } from "./bounded-wait.ts";

/**
 * Messages to all gateways. The bus only wakes readers and evicts caches. After a lost message, gateways still find the
 * state in PostgreSQL.
 */
export interface BusMessages {
  /** Rows were added to `events`. */
  events: "";
  /** Id of a session that ended. */
  "session-ended": string;
  /** Id of a session that changed its status without ending. */
  "session-changed": string;
  /** Id of a turn that ended or has new output. */
  "turn-changed": string;
  /** Id of a key, login, user or account with changed bearers. */
  "bearer-changed": string;
  /** Kind and queues of added jobs, one per line. */
  jobs: string;
  /** Latest version of the status. */
  "status-changed": `${bigint}`;
  /** Id of an ended session with a profile that its worker offers to be saved. */
  "profile-offered": string;
  /** A slot of a worker may be free. */
  capacity: "";
  /** Id of an account that has fewer running sessions or fewer waiting creates than before. */
  "slot-freed": string;
  /** A change in an account, as written by `publishChange`. */
  "account-changed": string;
  /** A process was cut off from the bus, and may have missed messages or failed to send them. */
  resumed: "";
}

export type BusChannel = keyof BusMessages;

/** Delivers each message to every gateway at most once. */
export interface Bus {
  publish<C extends BusChannel>(channel: C, message: BusMessages[C]): void;
  /** Calls the listener with every message until the returned function is called. */
  subscribe<C extends BusChannel>(channel: C, listener: (message: BusMessages[C]) => void): () => void;
}

/** Resolves at the next message of a channel, after `ms` milliseconds, or when the signal aborts. */
export function nextMessage(bus: Bus, channel: BusChannel, ms: number, signal: AbortSignal): Promise<void> {
  const woken = new AbortController();
  const unsubscribe = bus.subscribe(channel, () => woken.abort());
  return sleep(ms, AbortSignal.any([woken.signal, signal])).finally(unsubscribe);
}

/** Creates a bus within one process. */
export function createLocalBus(): Bus {
  const emitter = new EventEmitter().setMaxListeners(0);
  // The prefix avoids the name "error", for which an emitter throws without listeners.
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
