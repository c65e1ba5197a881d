import { create } from "@bufbuild/protobuf";
import {
  AnswerCommandSchema,
  CaptureCommandSchema,
  type CommandContext,
  ControlCommandSchema,
  type InputAnswer,
  type InputCommand,
  InputCommandSchema,
  type InputPart,
  InputPartSchema,
  InteractCommandSchema,
  type LendRequest,
  LendRequestSchema,
  NavigateCommandSchema,
  ObserveCommandSchema,
  type Selection,
  SelectionCommandSchema,
  StateCommandSchema,
  StepPictureCommandSchema,
  type ViewRequest,
  ViewRequestSchema,
  WaitCommandSchema,
  WorkerService,
} from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { JoinResponse, LiveAnswer, LiveViewer } from "../../gen/pilothouse/v1/live_pb.ts";
import {
  type CaptureRequest,
  type CaptureStreamResponse,
  CaptureStreamResponseSchema,
  type CdpResponse,
  type InteractRequest,
  type InteractResponse,
  type NavigateRequest,
  type NavigateResponse,
  type Observation,
  type ObserveRequest,
  type SessionState,
  SessionStatus,
  type WaitRequest,
  type WaitResponse,
} from "../../gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../platform/errors.ts";
import { InputLine, type InputListener, type OpenInput, type SentPart } from "./input-line.ts";
import { assertNavigable } from "./page-address.ts";
import type { SessionCaller } from "./session-caller.ts";
import type { SessionRoutes } from "./session-routes.ts";
import { commandContext, type WorkerCommands } from "./worker-commands.ts";

/** Milliseconds within which a worker's report is applied; usually 20 to 120. */
const reportPatience = 1_000;

/** Commands of a session, for unary calls and Drive. The session is `id`; an identifier in the request is ignored. */
export interface SessionCommands {
  navigate(
    caller: SessionCaller,
    id: string,
    request: NavigateRequest,
    idempotencyKey?: string,
  ): Promise<NavigateResponse>;
  interact(
    caller: SessionCaller,
    id: string,
    request: InteractRequest,
    idempotencyKey?: string,
  ): Promise<InteractResponse>;
  wait(caller: SessionCaller, id: string, request: WaitRequest): Promise<WaitResponse>;
  observe(caller: SessionCaller, id: string, request: ObserveRequest): Promise<Observation>;
  /** Returns the screenshot (JPEG) taken before a step; undefined if there is none. */
  stepPicture(caller: SessionCaller, id: string, stepId: string): Promise<Uint8Array | undefined>;
  state(caller: SessionCaller, id: string): Promise<SessionState>;
  /** Notifies the worker of the control holder. Resolves when no input of the previous holder can reach the page. */
  tellControl(caller: SessionCaller, id: string): Promise<void>;
  /** Sends a person's input to the page, and returns how much was accepted. */
  sendInput(caller: SessionCaller, id: string, input: PersonInput): Promise<InputAnswer>;
  /** Opens a line for continuous input of a client. */
  openInput(caller: SessionCaller, id: string, clientId: string, listener: InputListener): InputLine;
  /** Reads the selected text, for the client that holds control. */
  readSelection(caller: SessionCaller, id: string): Promise<Selection>;
  /** Answers a dialog of the page, for the client that holds control. */
  answerQuestion(caller: SessionCaller, id: string, answer: LiveAnswer): Promise<void>;
  capture(caller: SessionCaller, id: string, request: CaptureRequest): AsyncIterable<CaptureStreamResponse>;
  /** Connects a CDP client to the browser. The first response confirms the connection. */
  lend(caller: SessionCaller, id: string, messages: AsyncIterable<MessagePart>): AsyncIterable<CdpResponse>;
  /** Shows the session to a viewer, whose first message joins. */
  view(
    caller: SessionCaller,
    id: string,
    viewer: LiveViewer,
    messages: AsyncIterable<ViewerMessage>,
  ): AsyncIterable<JoinResponse>;
}

/** A message of a viewer for the worker, with the worker's LiveKit token if the viewer subscribes to video. */
export type ViewerMessage = Pick<ViewRequest, "request"> & Partial<Pick<ViewRequest, "publishToken">>;

export type PersonInput = Pick<InputCommand, "clientId" | "events"> & Partial<Pick<InputCommand, "controlEpoch">>;

/** A part of a message of a CDP client. */
export interface MessagePart {
  readonly data: Uint8Array;
  readonly last: boolean;
}

/** `closed` is sent only if the client closed its connection. */
async function* lendRequests(context: CommandContext, parts: AsyncIterable<MessagePart>): AsyncGenerator<LendRequest> {
  yield create(LendRequestSchema, { context });
  for await (const { data, last } of parts) {
    if (data.length > 0) yield create(LendRequestSchema, { data, last });
  }
  yield create(LendRequestSchema, { closed: true });
}

/** Attaches the command context to the first part, and whenever the control epoch has increased. */
async function* inputParts(
  names: Pick<InputPart, "streamId" | "clientId">,
  parts: AsyncIterable<SentPart>,
  look: () => Promise<CommandContext>,
): AsyncGenerator<InputPart> {
  let told: CommandContext | undefined;
  for await (const part of parts) {
    const now = await look();
    const isNews = !told || now.controlEpoch > told.controlEpoch;
    yield create(InputPartSchema, { ...part, ...(!told && names), ...(isNews && { context: now }) });
    if (isNews) told = now;
  }
}

async function* viewRequests(
  context: CommandContext,
  viewer: LiveViewer,
  messages: AsyncIterable<ViewerMessage>,
): AsyncGenerator<ViewRequest> {
  for await (const { request, publishToken = "" } of messages) {
    yield create(ViewRequestSchema, {
      ...(request && { request }),
      publishToken,
      ...(request?.join && { context, viewer }),
    });
  }
}

/** Splits the header from the first chunk: clients expect it separately, but workers send both in one message. */
async function* headerFirst(parts: AsyncIterable<CaptureStreamResponse>): AsyncGenerator<CaptureStreamResponse> {
  for await (const { header, data } of parts) {
    if (header) yield create(CaptureStreamResponseSchema, { header });
    if (data.length > 0) yield create(CaptureStreamResponseSchema, { data });
  }
}

/** Creates the commands, each a translation of its request. */
export function createSessionCommands(commands: WorkerCommands, routes: SessionRoutes): SessionCommands {
  const { method } = WorkerService;

  /** The worker has reported a pause: waits until the row shows it, so that a GET agrees. */
  async function awaitPause({ principal: { accountId } }: SessionCaller, id: string): Promise<void> {
    const which = { id, accountId, milliseconds: reportPatience };
    // The navigation has succeeded in any case.
    await routes.awaitStatus(which, (status) => status !== "live").catch(() => undefined);
  }

  /** Current command context. Throws if the session has ended. */
  async function contextNow(caller: SessionCaller, id: string): Promise<CommandContext> {
    return commandContext(caller, id, await routes.findRunning(id, caller.principal.accountId), 0);
  }

  /** Rejects client commands while an agent's turn runs. */
  async function assertNoTurn({ principal, stepId, clientId }: SessionCaller, id: string): Promise<void> {
    if (stepId !== undefined || clientId !== undefined) return;
    const { row, holderClientId } = await routes.findRunning(id, principal.accountId);
    const { running_turn_id: turn } = row;
    if (turn === null || holderClientId !== "") return;
    throw fail(
      "conflict",
      { running_turn_id: turn },
      { detail: "the agent is working on the page: wait until its turn has ended" },
    );
  }

  return {
    async navigate(caller, id, request, idempotencyKey) {
      assertNavigable(request.url);
      await assertNoTurn(caller, id);
      const answer = await commands.run({
        caller,
        id,
        method: method.navigate,
        idempotencyKey,
        build: (context) => create(NavigateCommandSchema, { context, request }),
      });
      if (answer.status === SessionStatus.PAUSED) await awaitPause(caller, id);
      return answer;
    },
    async interact(caller, id, request, idempotencyKey) {
      await assertNoTurn(caller, id);
      return commands.run({
        caller,
        id,
        method: method.interact,
        idempotencyKey,
        build: (context) => create(InteractCommandSchema, { context, request }),
      });
    },
    async wait(caller, id, request) {
      await assertNoTurn(caller, id);
      return commands.run({
        caller,
        id,
        method: method.wait,
        build: (context) => create(WaitCommandSchema, { context, request }),
      });
    },
    observe: (caller, id, request) =>
      commands.run({
        caller,
        id,
        method: method.observe,
        build: (context) => create(ObserveCommandSchema, { context, request }),
      }),
    async stepPicture(caller, id, stepId) {
      const build = (context: CommandContext) => create(StepPictureCommandSchema, { context, stepId });
      return (await commands.run({ caller, id, method: method.getStepPicture, build })).data;
    },
    state: (caller, id) =>
      commands.run({
        caller,
        id,
        method: method.getState,
        build: (context) => create(StateCommandSchema, { context }),
      }),
    async tellControl(caller, id) {
      // The cached route may have the previous epoch.
      routes.forget(id);
      const build = (context: CommandContext) => create(ControlCommandSchema, { context });
      await commands.run({ caller, id, method: method.setControl, build });
    },
    sendInput: (caller, id, input) =>
      commands.run({
        caller,
        id,
        method: method.sendInput,
        build: (context) => create(InputCommandSchema, { context, ...input }),
      }),
    openInput(caller, id, clientId, listener) {
      const open: OpenInput = (streamId, parts, signal) =>
        commands.exchange({
          // Input is still sent after its client has left.
          caller: { ...caller, signal, deadline: Number.POSITIVE_INFINITY },
          id,
          method: method.streamInput,
          build: () => inputParts({ streamId, clientId }, parts, () => contextNow(caller, id)),
        });
      return new InputLine(open, listener);
    },
    readSelection: (caller, id) =>
      commands.run({
        caller,
        id,
        method: method.readSelection,
        build: (context) => create(SelectionCommandSchema, { context }),
      }),
    async answerQuestion(caller, id, answer) {
      const build = (context: CommandContext) => create(AnswerCommandSchema, { context, answer });
      await commands.run({ caller, id, method: method.answerQuestion, build });
    },
    capture: (caller, id, request) =>
      headerFirst(
        commands.stream({
          caller,
          id,
          method: method.capture,
          outlivesSession: true,
          build: (context) => create(CaptureCommandSchema, { context, request }),
        }),
      ),
    lend: (caller, id, messages) =>
      commands.exchange({ caller, id, method: method.lend, build: (context) => lendRequests(context, messages) }),
    view: (caller, id, viewer, messages) =>
      commands.exchange({
        caller,
        id,
        method: method.view,
        build: (context) => viewRequests(context, viewer, messages),
      }),
  };
}
