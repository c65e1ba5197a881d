import {
  create,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { type Metadata, status } from "@grpc/grpc-js";
import type { Channels, WorkerLink } from "../../fleet/channels.ts";
import { type CommandContext, CommandContextSchema } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import { asFailure, type Failure, fail } from "../../platform/errors.ts";
import { type FleetCommand, toCommand } from "../../platform/grpc/fleet-commands.ts";
import { fleetMetadata } from "../../platform/grpc/fleet-metadata.ts";
import {
  callBidiStreaming,
  callClientStreaming,
  callServerStreaming,
  callUnary,
  type GrpcCallOptions,
  type TypedMethod,
} from "../../platform/grpc/grpc-codec.ts";
import { isServiceError, statusToFailure } from "../../platform/grpc/grpc-failure.ts";
import type { SessionCaller } from "./session-caller.ts";
import type { SessionRoute, SessionRoutes } from "./session-routes.ts";

/** Milliseconds. */
const times = {
  /** The longest that a command may take, its time in the queue included, for clients that do not say how long they wait. */
  command: 600_000,
  /** The worker ends a command at its deadline by itself; only a silent one is cut off by us. */
  margin: 2_000,
  /** A worker that is lost is known to be so within its lease of 8 s and a sweep. */
  verdict: 10_000,
  /** A worker that came back registers, and so ends its old sessions, within this. */
  registration: 1_500,
};

/** Sends commands to the workers of sessions. */
export interface WorkerCommands {
  /** Runs a command and gives its answer. */
  run<I extends DescMessage, O extends DescMessage>(
    caller: SessionCaller,
    id: string,
    command: FleetCommand<"unary", I, O>,
    request: MessageInitShape<I>,
    how?: Pick<CommandTraits, "conflictsWithTurn">,
  ): Promise<MessageShape<O>>;
  /** Runs a command whose answer is a stream. */
  stream<I extends DescMessage, O extends DescMessage>(
    caller: SessionCaller,
    id: string,
    command: FleetCommand<"server_streaming", I, O>,
    request: MessageInitShape<I>,
    how?: StreamTraits,
  ): AsyncIterable<MessageShape<O>>;
  /** Runs a command that comes as a stream, for as long as it comes. A failure of that stream is the command's. */
  send<I extends DescMessage, O extends DescMessage>(
    command: StreamedCommand<"client_streaming", I, O>,
  ): Promise<MessageShape<O>>;
  /** Runs a command that is a conversation, for as long as its session and its client go on. */
  exchange<I extends DescMessage, O extends DescMessage>(
    command: StreamedCommand<"bidi_streaming", I, O>,
  ): AsyncIterable<MessageShape<O>>;
}

/** One command that is a stream of messages. */
export interface StreamedCommand<Kind, I extends DescMessage, O extends DescMessage> {
  readonly caller: SessionCaller;
  /** Identifier of the session. */
  readonly id: string;
  readonly method: TypedMethod<Kind, I, O> & DescMethod;
  /** Makes the messages, as fast as the worker takes them. */
  build(context: CommandContext): AsyncIterable<MessageShape<I>>;
}

/** What holds for a command of some kind. */
interface CommandTraits {
  /** It goes on for as long as its session and its client do. */
  readonly isEndless?: boolean;
  /** Clients get `conflict` while an agent's turn acts on the page. */
  readonly conflictsWithTurn?: boolean;
}

/** How long an answer that is a stream goes on. */
export interface StreamTraits extends Pick<CommandTraits, "isEndless"> {
  /** Ends the stream in place of the caller's own signal, when its reader may leave before the client does. */
  readonly until?: AbortSignal;
  /** What has begun to arrive is made: neither the end of its session nor its time cuts it off, however slow its reader. */
  readonly outlivesSession?: boolean;
}

/** Makes what comes with every command. */
export function commandContext(
  caller: SessionCaller,
  sessionId: string,
  epochs: Pick<SessionRoute, "placementEpoch" | "controlEpoch"> & Partial<Pick<SessionRoute, "holderClientId">>,
  timeoutMs: number,
): CommandContext {
  const { traceparent, requestId, idempotencyKey = "", clientId = "", stepId = "", variables = [] } = caller;
  const { placementEpoch, controlEpoch, holderClientId = "" } = epochs;
  const init = { sessionId, placementEpoch, controlEpoch, holderClientId, timeoutMs };
  const about = { traceparent, requestId, idempotencyKey, clientId, stepId, variables: [...variables] };
  return create(CommandContextSchema, { ...init, ...about });
}

/**
 * Says whether a call ended without an answer of the worker: it could not be reached, or the connection broke. A
 * cancellation counts when it was not ours: a server that goes down at once cancels what it runs.
 */
export function brokeOnTheWay(error: unknown): boolean {
  const isProblem = !isServiceError(error) || statusToFailure(error).cause !== error;
  return !isProblem && error.code !== status.DEADLINE_EXCEEDED;
}

/** Refuses what clients do to a page while an agent does something to it. */
function assertNoTurn({ stepId, clientId }: SessionCaller, { row, holderClientId }: SessionRoute): void {
  const { running_turn_id: turn } = row;
  if (stepId !== undefined || clientId !== undefined || turn === null || holderClientId !== "") return;
  const detail = "the agent works on the page: wait for its turn's end";
  throw fail("conflict", { running_turn_id: turn }, { detail });
}

/** One command while it runs: it ends when its client goes away, and when its session or its time ends. */
class Running {
  readonly options: GrpcCallOptions;
  readonly context: CommandContext;
  sessionEnded = false;
  isLate = false;
  readonly #controller = new AbortController();
  readonly #release: () => void;
  readonly #settle: () => void;

  constructor(
    caller: SessionCaller,
    gone: AbortSignal,
    route: SessionRoute,
    link: WorkerLink,
    routes: SessionRoutes,
    isEndless: boolean,
  ) {
    const left = Math.min(caller.deadline - performance.now(), isEndless ? Number.POSITIVE_INFINITY : times.command);
    if (left <= 0) throw fail("session-timeout", {}, { detail: "the client's deadline has passed" });
    const timeoutMs = Number.isFinite(left) ? Math.ceil(left) : 0;
    const { signal } = this.#controller;
    this.options = { metadata: link.metadata, signal };
    this.context = commandContext(caller, route.row.id, route, timeoutMs);
    const cancel = (): void => this.#controller.abort();
    if (gone.aborted) cancel();
    gone.addEventListener("abort", cancel, { once: true });
    const unlisten = routes.onEnd(route.row.id, () => {
      this.sessionEnded = true;
      cancel();
    });
    // Not gRPC's own deadline: that cannot be lifted from a stream that runs.
    const expire = (): void => {
      this.isLate = true;
      cancel();
    };
    const timer = timeoutMs > 0 ? setTimeout(expire, timeoutMs + times.margin) : undefined;
    this.#settle = () => {
      clearTimeout(timer);
      unlisten();
    };
    this.#release = () => {
      gone.removeEventListener("abort", cancel);
      this.#settle();
    };
  }

  /** From now on only its client's going away ends it. */
  settle(): void {
    this.#settle();
  }

  [Symbol.dispose](): void {
    this.#release();
  }
}

/** Resolves when the session ends or the signal aborts; at the latest when the time is up. */
function waitForEnd(routes: SessionRoutes, id: string, caller: SessionCaller, milliseconds: number): Promise<void> {
  const ended = new AbortController();
  const unlisten = routes.onEnd(id, () => ended.abort());
  return sleep(milliseconds, AbortSignal.any([ended.signal, caller.signal])).finally(unlisten);
}

/** Makes what sends commands. */
export function createWorkerCommands(routes: SessionRoutes, channels: Channels): WorkerCommands {
  /** Reads the session anew: throws `session-destroyed` when it has ended. */
  async function assertRunning(id: string, { principal }: SessionCaller): Promise<void> {
    routes.forget(id);
    await routes.findRunning(id, principal.accountId);
  }

  /** The connection broke: what became of the command is unknown until the fleet has a verdict or the worker is back. */
  async function awaitVerdict(caller: SessionCaller, id: string, link: WorkerLink): Promise<Failure> {
    await assertRunning(id, caller);
    const patience = Math.max(0, Math.min(times.verdict, caller.deadline - performance.now()));
    const isBack = channels.isBack(link, patience).then(async (back) => {
      if (back) await waitForEnd(routes, id, caller, Math.min(times.registration, patience));
    });
    await Promise.race([isBack, waitForEnd(routes, id, caller, patience)]);
    await assertRunning(id, caller);
    const detail = "the connection to the browser's machine broke; whether the command was carried out is not known";
    return fail("driver-error", { worker_lost: true }, { detail });
  }

  /** Finds out what a failed command has to answer. */
  async function explain(
    error: unknown,
    caller: SessionCaller,
    id: string,
    link: WorkerLink,
    running: Running,
  ): Promise<Failure> {
    if (running.sessionEnded) await assertRunning(id, caller);
    if (caller.signal.aborted) return asFailure(caller.signal.reason);
    if (running.isLate)
      return fail("session-timeout", {}, { detail: "the worker did not answer in time", cause: error });
    if (brokeOnTheWay(error)) return awaitVerdict(caller, id, link);
    const failure = statusToFailure(error);
    if (failure.slug === "session-destroyed") {
      // The worker knows of the end before we do: its report is on its way.
      await assertRunning(id, caller);
      await waitForEnd(routes, id, caller, times.registration);
      await assertRunning(id, caller);
    }
    return failure;
  }

  async function begin(caller: SessionCaller, gone: AbortSignal, id: string, traits: CommandTraits) {
    const { isEndless = false, conflictsWithTurn = false } = traits;
    const route = await routes.findRunning(id, caller.principal.accountId);
    if (conflictsWithTurn) assertNoTurn(caller, route);
    if (route.row.status === "provisioning") throw fail("conflict", {}, { detail: "the session is being launched" });
    const link = channels.to(route.worker);
    return { link, running: new Running(caller, gone, route, link, routes, isEndless) };
  }

  /**
   * Whether the worker has refused a command because this gateway had yet to hear of a change of control, which is over:
   * nothing was begun then, and the command can be sent again.
   */
  async function isOutdated(failure: Failure, caller: SessionCaller, id: string, sent: bigint): Promise<boolean> {
    if (failure.slug !== "conflict" || Object.keys(failure.extensions).length > 0) return false;
    routes.forget(id);
    const { controlEpoch, holderClientId } = await routes.findRunning(id, caller.principal.accountId);
    return controlEpoch > sent && holderClientId === "";
  }

  return {
    async run(caller, id, command, request, how = {}) {
      const { link, running } = await begin(caller, caller.signal, id, how);
      using _ = running;
      try {
        const onTrailer = (trailer: Metadata): void => {
          if (trailer.get(fleetMetadata.replayed).length > 0) caller.markReplayed?.();
        };
        const message = toCommand(command, running.context, request);
        return await callUnary(link.client, command.method, message, { ...running.options, onTrailer });
      } catch (error) {
        const failure = await explain(error, caller, id, link, running);
        const isOver = await isOutdated(failure, caller, id, running.context.controlEpoch);
        if (isOver) return this.run(caller, id, command, request, how);
        throw failure;
      }
    },
    async send({ caller, id, method, build }) {
      const { link, running } = await begin(caller, caller.signal, id, { isEndless: true });
      using _ = running;
      try {
        return await callClientStreaming(link.client, method, build(running.context), running.options);
      } catch (error) {
        throw await explain(error, caller, id, link, running);
      }
    },
    async *stream(caller, id, command, request, how = {}) {
      const { outlivesSession = false, isEndless = false, until = caller.signal } = how;
      const { link, running } = await begin(caller, until, id, { isEndless });
      using _ = running;
      try {
        const message = toCommand(command, running.context, request);
        for await (const part of callServerStreaming(link.client, command.method, message, running.options)) {
          if (outlivesSession) running.settle();
          yield part;
        }
      } catch (error) {
        if (until.aborted) throw asFailure(until.reason);
        throw await explain(error, caller, id, link, running);
      }
    },
    async *exchange({ caller, id, method, build }) {
      const { link, running } = await begin(caller, caller.signal, id, { isEndless: true });
      using _ = running;
      try {
        yield* callBidiStreaming(link.client, method, build(running.context), running.options);
      } catch (error) {
        throw await explain(error, caller, id, link, running);
      }
    },
  };
}
