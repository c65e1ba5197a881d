import { type Bus, type BusChannel, type BusMessages, createLocalBus } from "./bus.ts";

/** One message of the bus on its way between processes. */
export interface BusPost {
  readonly kind: "bus";
  readonly channel: BusChannel;
  readonly message: BusMessages[BusChannel];
}

/** What a process that was started by a supervisor begins with. */
export interface Beginning {
  readonly kind: "begin";
  /** Port of the demo page; 0 leaves the choice to the process that serves it. */
  readonly demoPort: number;
  /** Stands in links that are as good as a password and last until the service is stopped: to the demo and to the outbox. */
  readonly linkSecret: string;
}

/** What a process tells its supervisor once it serves. */
export interface Readiness {
  readonly kind: "ready";
  readonly demoPort?: number;
  /** What a person who started the service is to read. */
  readonly welcome?: string;
}

/** What a supervisor asks of its processes again and again. */
export type Question = "alive" | "ready" | "metrics";

/** From a supervisor to its process. */
export type ToProcess =
  | Beginning
  | BusPost
  | { readonly kind: "ask"; readonly id: number; readonly question: Question };

/** From a process to its supervisor. */
export type FromProcess = Readiness | BusPost | { readonly kind: "answer"; readonly id: number; readonly text: string };

/** How many bytes a channel holds for a process that does not read, such as one that is stopped. */
const longestBacklog = 2 ** 20;

/** The sending end of a channel between two processes. */
type Send = (message: FromProcess | ToProcess, done: (error: Error | null) => void) => boolean;

/**
 * Makes what posts messages of the bus to another process. Those that find too much unread are dropped, as the bus may: the
 * process that misses them looks for itself within a second.
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
  /** Resolves when the process is to begin: all that it needs is there. */
  readonly begun: Promise<Beginning>;
  /** Sets what the process answers; until then it is alive, and not ready. */
  answer(answers: Partial<Record<Question, () => Promise<string>>>): void;
  tellReady(readiness: Omit<Readiness, "kind">): void;
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
  let answers: Partial<Record<Question, () => Promise<string>>> = {};

  async function reply(id: number, question: Question): Promise<void> {
    const text = (await answers[question]?.().catch(() => "")) ?? "";
    tell({ kind: "answer", id, text }, () => undefined);
  }

  process.on("message", (message: ToProcess) => {
    if (message.kind === "begin") begun.resolve(message);
    else if (message.kind === "ask") void reply(message.id, message.question);
    else local.publish(message.channel, message.message as never);
  });
  // The supervisor is gone: the next one starts its own processes, on the same ports.
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
    answer(given) {
      answers = given;
    },
    tellReady: (readiness) => void tell({ kind: "ready", ...readiness }, () => undefined),
  };
}
