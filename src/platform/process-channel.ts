import type { Registry } from "prom-client";
import { type Bus, type BusChannel, type BusMessages, createLocalBus } from "./bus.ts";

/** A bus message between processes. */
export interface BusEnvelope {
  readonly kind: "bus";
  readonly channel: BusChannel;
  readonly message: BusMessages[BusChannel];
}

/** Permits a process to start. */
export interface BeginMessage {
  readonly kind: "begin";
  /** Port of the demo page. With 0, the serving process chooses. */
  readonly demoPort: number;
  /** Secret part of links to the demo and the outbox, which are valid until the service stops. */
  readonly linkSecret: string;
}

/** Notifies the supervisor that its process is ready. */
export interface ProcessReady {
  readonly kind: "ready";
  readonly demoPort?: number;
  /** Text for the user who started the service. */
  readonly welcome?: string;
}

/** Request of a supervisor. The response to `alive` is empty. The response to `ready` is `ready` or empty. */
export type ProcessRequest = "alive" | "ready" | "metrics";

/** Message from a supervisor to its process. */
export type ToProcess =
  | BeginMessage
  | BusEnvelope
  | { readonly kind: "ask"; readonly id: number; readonly question: ProcessRequest };

/** Message from a process to its supervisor. */
export type FromProcess =
  | ProcessReady
  | BusEnvelope
  | { readonly kind: "answer"; readonly id: number; readonly text: string };

/** Maximum number of characters of bus messages queued for a process that does not read. */
const maxQueuedLength = 2 ** 20;

/** Sends a message to the other process. */
type Send = (message: FromProcess | ToProcess, done: (error: Error | null) => void) => boolean;

/**
 * Creates a function that sends bus messages to another process. Drops messages while too many are queued, as the bus
 * permits: the process polls the database within a second.
 */
export function createBusSender(send: Send): (post: BusEnvelope) => void {
  let unread = 0;
  return (post) => {
    const size = post.channel.length + post.message.length;
    if (unread + size > maxQueuedLength) return;
    unread += size;
    send(post, () => {
      unread -= size;
    });
  };
}

/** Connection of a process to its supervisor. */
export interface SupervisorLink {
  /** Bus to the other processes of the service. */
  readonly bus: Bus;
  /** Resolves when the process may start. */
  readonly begun: Promise<BeginMessage>;
  /** Notifies the supervisor that the process is ready, and answers the supervisor's requests from `health`. */
  reportReady(readiness: Omit<ProcessReady, "kind">, health: ProcessHealth): void;
}

/** Health and metrics for the supervisor. */
export interface ProcessHealth {
  isReady(): Promise<boolean>;
  readonly metrics: Pick<Registry, "metrics">;
}

/** Connects to the supervisor. Returns undefined if there is none. */
export function linkToSupervisor(): SupervisorLink | undefined {
  const send = process.send?.bind(process);
  if (!send) return undefined;
  const sendMessage = (message: FromProcess, done: (error: Error | null) => void): boolean =>
    send(message, undefined, undefined, done);
  const post = createBusSender(sendMessage as Send);
  const local = createLocalBus();
  const begun = Promise.withResolvers<BeginMessage>();
  let health: ProcessHealth | undefined;

  async function answerTo(question: ProcessRequest): Promise<string> {
    if (question === "ready") return (await health?.isReady()) ? "ready" : "";
    return question === "metrics" ? ((await health?.metrics.metrics()) ?? "") : "";
  }

  async function reply(id: number, question: ProcessRequest): Promise<void> {
    const text = await answerTo(question).catch(() => "");
    sendMessage({ kind: "answer", id, text }, () => undefined);
  }

  process.on("message", (message: ToProcess) => {
    if (message.kind === "begin") begun.resolve(message);
    else if (message.kind === "ask") void reply(message.id, message.question);
    else local.publish(message.channel, message.message as never);
  });
  // Exits when the supervisor has ended, so that the processes of the next supervisor find the ports free.
  process.once("disconnect", () => process.exit(1));
  return {
    bus: {
      subscribe: local.subscribe,
      publish(channel, message) {
        local.publish(channel, message);
        post({ kind: "bus", channel, message });
      },
    },
    begun: begun.promise,
    reportReady(readiness, given) {
      health = given;
      sendMessage({ kind: "ready", ...readiness }, () => undefined);
    },
  };
}
