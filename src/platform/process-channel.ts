import type { Registry } from "prom-client";
import { type Bus, type BusChannel, type BusMessages, createLocalBus } from "./bus.ts";

/** One message of the bus on its way between processes. */
export interface BusPost {
  readonly kind: "bus";
  readonly channel: BusChannel;
  readonly message: BusMessages[BusChannel];
}

/** Tells a process to begin. */
export interface Beginning {
  readonly kind: "begin";
  /** Port of the demo page; 0 leaves the choice to the process that serves it. */
  readonly demoPort: number;
  /** Part of the links to the demo and to the outbox, which need no password and work until the service is stopped. */
  readonly linkSecret: string;
}

/** Tells a supervisor that its process is ready. */
export interface Readiness {
  readonly kind: "ready";
  readonly demoPort?: number;
  /** Text for the person who has started the service. */
  readonly welcome?: string;
}

/** A question of a supervisor: `alive` has an empty answer, `ready` is answered with `ready` or nothing. */
export type Question = "alive" | "ready" | "metrics";

/** From a supervisor to its process. */
export type ToProcess =
  | Beginning
  | BusPost
  | { readonly kind: "ask"; readonly id: number; readonly question: Question };

/** From a process to its supervisor. */
export type FromProcess = Readiness | BusPost | { readonly kind: "answer"; readonly id: number; readonly text: string };

/** Characters of bus messages that wait at most for a process that does not read, such as one that is stopped. */
const longestBacklog = 2 ** 20;

/** The sending end of a channel between two processes. */
type Send = (message: FromProcess | ToProcess, done: (error: Error | null) => void) => boolean;

/**
 * Creates the function that posts messages of the bus to another process. It drops messages while too many wait, as the bus
 * may: a process that misses one reads the database within a second.
 */
export function createPostOffice(send: Send): (post: BusPost) => void {
  let unread = 0;
  return (post) => {
    const size = post.channel.length + post.message.length;
    if (unread + size > longestBacklog) return;
    unread += size;
    send(post, () => {
      unread -= size;
    });
  };
}

/** The link of a process to the supervisor that has started it. */
export interface SupervisorLink {
  /** Reaches the other processes of the service. */
  readonly bus: Bus;
  /** Resolves when the process may begin. */
  readonly begun: Promise<Beginning>;
  /** Tells the supervisor that the process is ready, and from then on answers with its health and metrics. */
  tellReady(readiness: Omit<Readiness, "kind">, health: ProcessHealth): void;
}

/** Source of the answers to a supervisor. */
export interface ProcessHealth {
  isReady(): Promise<boolean>;
  readonly metrics: Pick<Registry, "metrics">;
}

/** Links this process to its supervisor; undefined when it was started by something else. */
export function linkToSupervisor(): SupervisorLink | undefined {
  const send = process.send?.bind(process);
  if (!send) return undefined;
  const tell = (message: FromProcess, done: (error: Error | null) => void): boolean =>
    send(message, undefined, undefined, done);
  const post = createPostOffice(tell as Send);
  const local = createLocalBus();
  const begun = Promise.withResolvers<Beginning>();
  let health: ProcessHealth | undefined;

  async function answerTo(question: Question): Promise<string> {
    if (question === "ready") return (await health?.isReady()) ? "ready" : "";
    return question === "metrics" ? ((await health?.metrics.metrics()) ?? "") : "";
  }

  async function reply(id: number, question: Question): Promise<void> {
    const text = await answerTo(question).catch(() => "");
    tell({ kind: "answer", id, text }, () => undefined);
  }

  process.on("message", (message: ToProcess) => {
    if (message.kind === "begin") begun.resolve(message);
    else if (message.kind === "ask") void reply(message.id, message.question);
    else local.publish(message.channel, message.message as never);
  });
  // The supervisor has ended. The next one starts its own processes on the same ports.
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
    tellReady(readiness, given) {
      health = given;
      tell({ kind: "ready", ...readiness }, () => undefined);
    },
  };
}
