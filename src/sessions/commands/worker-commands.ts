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
import { activeTraceparent } from "../../platform/traces/spans.ts";
import type { SessionCaller } from "./session-caller.ts";
import type { SessionRoute, SessionRoutes } from "./session-routes.ts";

/** Milliseconds. */
const times = {
  /** Maximum duration of a command that is not endless, including its queue time. */
  command: 600_000,
  /** Time after the deadline until this gateway cancels a command. The worker normally enforces the deadline. */
  margin: 2_000,
  /** Time until the loss of a worker is known: its lease of 8 s, and the next sweep, which runs every second. */
  lossKnown: 10_000,
  /** Time for a restarted worker to register, which ends its old sessions. */
  registration: 1_500,
};

export interface WorkerCommands {
  run<I extends DescMessage, O extends DescMessage>(
    caller: SessionCaller,
    id: string,
    command: FleetCommand<"unary", I, O>,
    request: MessageInitShape<I>,
    traits?: Pick<CommandTraits, "conflictsWithTurn">,
  ): Promise<MessageShape<O>>;
  /** Runs a command with a streamed response. */
  stream<I extends DescMessage, O extends DescMessage>(
    caller: SessionCaller,
    id: string,
    command: FleetCommand<"server_streaming", I, O>,
    request: MessageInitShape<I>,
    traits?: StreamTraits,
  ): AsyncIterable<MessageShape<O>>;
  /** Runs a command with a streamed request. An error of the request stream fails the command. */
  send<I extends DescMessage, O extends DescMessage>(
    command: StreamedCommand<"client_streaming", I, O>,
  ): Promise<MessageShape<O>>;
  /** Runs a bidirectional command, until its session ends or its client leaves. */
  exchange<I extends DescMessage, O extends DescMessage>(
    command: StreamedCommand<"bidi_streaming", I, O>,
  ): AsyncIterable<MessageShape<O>>;
}

export interface StreamedCommand<Kind, I extends DescMessage, O extends DescMessage> {
  readonly caller: SessionCaller;
  /** Identifier of the session. */
  readonly id: string;
  readonly method: TypedMethod<Kind, I, O> & DescMethod;
  /** Creates the request messages, as fast as the worker reads them. */
  build(context: CommandContext): AsyncIterable<MessageShape<I>>;
}

/** Properties of a kind of command. */
interface CommandTraits {
  /** Whether the command runs until its session ends or its client leaves, limited only by the client's deadline. */
  readonly isEndless?: boolean;
  /** Whether clients receive `conflict` while an agent's turn acts on the page. */
  readonly conflictsWithTurn?: boolean;
}

/** Properties of a command with a streamed response. */
export interface StreamTraits extends Pick<CommandTraits, "isEndless"> {
  /** Signal that ends the stream in place of the caller's, if the reader may stop before the client leaves. */
  readonly until?: AbortSignal;
  /**
   * Whether a response that has started is interrupted neither by the end of the session nor by a timeout, because its
   * data is complete.
   */
  readonly outlivesSession?: boolean;
}

export function commandContext(
  caller: SessionCaller,
  sessionId: string,
  epochs: Pick<SessionRoute, "placementEpoch" | "controlEpoch"> & Partial<Pick<SessionRoute, "holderClientId">>,
  timeoutMs: number,
): CommandContext {
  const { traceparent, requestId, idempotencyKey = "", clientId = "", stepId = "", variables = [] } = caller;
  const { placementEpoch, controlEpoch, holderClientId = "" } = epochs;
  const init = { sessionId, placementEpoch, controlEpoch, holderClientId, timeoutMs };
  const trace = activeTraceparent() ?? traceparent;
  const about = { traceparent: trace, requestId, idempotencyKey, clientId, stepId, variables: [...variables] };
  return create(CommandContextSchema, { ...init, ...about });
}

/**
 * Returns whether a call failed without a response of the worker: the worker was unreachable, or the connection broke.
 * A cancellation by the server counts too, because a server that shuts down cancels its calls.
 */
export function isConnectionLost(error: unknown): boolean {
  const isProblem = !isServiceError(error) || statusToFailure(error).cause !== error;
  return !isProblem && error.code !== status.DEADLINE_EXCEEDED;
}

/** Throws `conflict` if a client acts through the API during an agent's turn while no person holds control. */
function assertNoTurn({ stepId, clientId }: SessionCaller, { row, holderClientId }: SessionRoute): void {
  const { running_turn_id: turn } = row;
  if (stepId !== undefined || clientId !== undefined || turn === null || holderClientId !== "") return;
  const detail = "a turn of the agent is running: wait until the turn ends, or cancel it";
  throw fail("conflict", { running_turn_id: turn }, { detail });
}

/** A running command. Aborts when `clientGone` aborts, its session ends or its time is up. */
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
    clientGone: AbortSignal,
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
    if (clientGone.aborted) cancel();
    clientGone.addEventListener("abort", cancel, { once: true });
    const unlisten = routes.onEnd(route.row.id, () => {
      this.sessionEnded = true;
      cancel();
    });
    // A timer instead of gRPC's own deadline, which cannot be lifted from a running stream.
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
      clientGone.removeEventListener("abort", cancel);
      this.#settle();
    };
  }

  /** Lifts the time limit and the abort at the session's end. The command is still aborted if its client leaves. */
  settle(): void {
    this.#settle();
  }

  [Symbol.dispose](): void {
    this.#release();
  }
}

/** Resolves when the session ends, the signal aborts or the time is up. */
function waitForEnd(routes: SessionRoutes, id: string, caller: SessionCaller, milliseconds: number): Promise<void> {
  const ended = new AbortController();
  const unlisten = routes.onEnd(id, () => ended.abort());
  return sleep(milliseconds, AbortSignal.any([ended.signal, caller.signal])).finally(unlisten);
}

export function createWorkerCommands(routes: SessionRoutes, channels: Channels): WorkerCommands {
  /** Rereads the session. Throws `session-destroyed` if the session has ended. */
  async function assertRunning(id: string, { principal }: SessionCaller): Promise<void> {
    await routes.reloadRunning(id, principal.accountId);
  }

  /**
   * After the loss of a connection, waits until the session has ended, the worker is reachable again, or the time is
   * up. Throws `session-destroyed` if the session has ended. Otherwise returns a failure, because the result of the
   * command is unknown.
   */
  async function awaitWorkerState(caller: SessionCaller, id: string, link: WorkerLink): Promise<Failure> {
    await assertRunning(id, caller);
    const longestWait = Math.max(0, Math.min(times.lossKnown, caller.deadline - performance.now()));
    const isBack = channels.waitForConnection(link, longestWait).then(async (back) => {
      if (back) await waitForEnd(routes, id, caller, Math.min(times.registration, longestWait));
    });
    await Promise.race([isBack, waitForEnd(routes, id, caller, longestWait)]);
    await assertRunning(id, caller);
    const detail =
      "the connection to the browser's machine broke; the command may have run: look at the page before you try again";
    return fail("driver-error", { worker_lost: true }, { detail });
  }

  /** Returns the failure to report for a failed command. Throws `session-destroyed` if the session has ended. */
  async function toReportedFailure(
    error: unknown,
    caller: SessionCaller,
    id: string,
    link: WorkerLink,
    running: Running,
  ): Promise<Failure> {
    if (running.sessionEnded) await assertRunning(id, caller);
    if (caller.signal.aborted) return asFailure(caller.signal.reason);
    if (running.isLate)
      return fail(
        "session-timeout",
        {},
        { detail: "the worker did not answer in time: the session continues, try again", cause: error },
      );
    if (isServiceError(error) && error.code === status.UNIMPLEMENTED && isConnectionLost(error)) {
      const detail = "the session's worker runs an earlier release: create another session";
      return fail("driver-not-integrated", {}, { detail, cause: error });
    }
    if (isConnectionLost(error)) return awaitWorkerState(caller, id, link);
    const failure = statusToFailure(error);
    if (failure.slug === "session-destroyed") {
      // The row may not show the end yet, because the worker's report is still on its way.
      await assertRunning(id, caller);
      await waitForEnd(routes, id, caller, times.registration);
      await assertRunning(id, caller);
    }
    return failure;
  }

  async function begin(caller: SessionCaller, clientGone: AbortSignal, id: string, traits: CommandTraits) {
    const { isEndless = false, conflictsWithTurn = false } = traits;
    const route = await routes.findRunning(id, caller.principal.accountId);
    if (conflictsWithTurn) assertNoTurn(caller, route);
    if (route.row.status === "provisioning")
      throw fail("conflict", {}, { detail: "the session is being launched: wait until its status is live" });
    const link = channels.to(route.worker);
    return { link, running: new Running(caller, clientGone, route, link, routes, isEndless) };
  }

  /**
   * Returns whether the worker rejected a command only because this gateway's control epoch was outdated and control is
   * free again. The command has not started, so it can be sent again.
   */
  async function isOutdated(failure: Failure, caller: SessionCaller, id: string, sent: bigint): Promise<boolean> {
    if (failure.slug !== "conflict" || Object.keys(failure.extensions).length > 0) return false;
    const { controlEpoch, holderClientId } = await routes.reloadRunning(id, caller.principal.accountId);
    return controlEpoch > sent && holderClientId === "";
  }

  return {
    async run(caller, id, command, request, traits = {}) {
      const { link, running } = await begin(caller, caller.signal, id, traits);
      using _ = running;
      try {
        const onTrailer = (trailer: Metadata): void => {
          if (trailer.get(fleetMetadata.replayed).length > 0) caller.markReplayed?.();
        };
        const message = toCommand(command, running.context, request);
        return await callUnary(link.client, command.method, message, { ...running.options, onTrailer });
      } catch (error) {
        const failure = await toReportedFailure(error, caller, id, link, running);
        const isOver = await isOutdated(failure, caller, id, running.context.controlEpoch);
        if (isOver) return this.run(caller, id, command, request, traits);
        throw failure;
      }
    },
    async send({ caller, id, method, build }) {
      const { link, running } = await begin(caller, caller.signal, id, { isEndless: true });
      using _ = running;
      try {
        return await callClientStreaming(link.client, method, build(running.context), running.options);
      } catch (error) {
        throw await toReportedFailure(error, caller, id, link, running);
      }
    },
    async *stream(caller, id, command, request, traits = {}) {
      const { outlivesSession = false, isEndless = false, until = caller.signal } = traits;
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
        throw await toReportedFailure(error, caller, id, link, running);
      }
    },
    async *exchange({ caller, id, method, build }) {
      const { link, running } = await begin(caller, caller.signal, id, { isEndless: true });
      using _ = running;
      try {
        yield* callBidiStreaming(link.client, method, build(running.context), running.options);
      } catch (error) {
        throw await toReportedFailure(error, caller, id, link, running);
      }
    },
  };
}
