import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CommandContext,
  type InputPart,
  InputPartSchema,
  type ProxyCdpRequest,
  ProxyCdpRequestSchema,
  type Selection,
  type ViewRequest,
  ViewRequestSchema,
  WorkerService,
} from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { SendInputRequest, SendInputResponse } from "../../gen/pilothouse/v1/agent_input_pb.ts";
import type { JoinResponse, LiveAnswer, LiveViewer } from "../../gen/pilothouse/v1/live_pb.ts";
import {
  type CaptureRequest,
  type CaptureStreamResponse,
  CaptureStreamResponseSchema,
  type CdpResponse,
  type GetSessionStateRequest,
  type InteractRequest,
  type InteractResponse,
  type NavigateRequest,
  type NavigateResponse,
  type Observation,
  type ObserveRequest,
  type ReadRequest,
  type ReadResponse,
  type SessionState,
  SessionStatus,
  type Thumbnail,
  type WaitRequest,
  type WaitResponse,
} from "../../gen/pilothouse/v1/session_pb.ts";
import { fleetCommands } from "../../platform/grpc/fleet-commands.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { findSession } from "../store.ts";
import { type InputListener, InputSender, type OpenInput, type SentPart } from "./input-sender.ts";
import { assertNavigable } from "./page-address.ts";
import type { PersonCaller, SessionCaller } from "./session-caller.ts";
import type { SessionRoutes } from "./session-routes.ts";
import { commandContext, type WorkerCommands } from "./worker-commands.ts";

/** Milliseconds to wait until a worker's report is stored. Reports usually arrive within 20 to 120 ms. */
const reportTimeout = 1_000;

type StateOf = Pick<GetSessionStateRequest, "id"> & { readonly brief?: boolean };

/** Commands on sessions. A command without a parameter `id` takes the identifier of the session from its request. */
export interface SessionCommands {
  navigate(caller: SessionCaller, request: NavigateRequest): Promise<NavigateResponse>;
  interact(caller: SessionCaller, request: InteractRequest): Promise<InteractResponse>;
  wait(caller: SessionCaller, request: WaitRequest): Promise<WaitResponse>;
  observe(caller: SessionCaller, request: ObserveRequest): Promise<Observation>;
  read(caller: SessionCaller, request: ReadRequest): Promise<ReadResponse>;
  /** With `brief`, leaves out the scroll position and, if there is only one page, its title. */
  getState(caller: SessionCaller, request: StateOf): Promise<SessionState>;
  captureStream(caller: SessionCaller, request: CaptureRequest): AsyncIterable<CaptureStreamResponse>;
  /** Returns the screenshot (JPEG) taken before a step; undefined if there is none. */
  stepPicture(caller: SessionCaller, id: string, stepId: string): Promise<Uint8Array | undefined>;
  /** Streams thumbnails of the active page of a session. */
  thumbnails(caller: SessionCaller, id: string): AsyncIterable<Thumbnail>;
  /** Notifies the worker of the control holder. Resolves when no input of the previous holder can reach the page. */
  notifyControl(caller: SessionCaller, id: string): Promise<void>;
  /** Sends a person's input to the page, and returns how much was accepted. */
  sendInput(caller: PersonCaller, id: string, request: SendInputRequest): Promise<SendInputResponse>;
  /** Creates the sender for continuous input of a client. */
  openInput(caller: SessionCaller, id: string, clientId: string, listener: InputListener): InputSender;
  /** Reads the selected text, for the client that holds control. */
  readSelection(caller: SessionCaller, id: string): Promise<Selection>;
  /** Answers a dialog of the page, for the client that holds control. */
  answerQuestion(caller: SessionCaller, id: string, answer: LiveAnswer): Promise<void>;
  /** Connects a CDP client to the browser. The first response confirms the connection. */
  proxyCdp(caller: SessionCaller, id: string, messages: AsyncIterable<MessagePart>): AsyncIterable<CdpResponse>;
  /** Shows the session to a viewer. The viewer's first message must be a join request. */
  view(
    caller: SessionCaller,
    id: string,
    viewer: LiveViewer,
    messages: AsyncIterable<ViewerMessage>,
  ): AsyncIterable<JoinResponse>;
  /** Reads the frames of a session. `acks` are the sequence numbers of acknowledged frames. */
  frames(caller: SessionCaller, id: string, acks: AsyncIterable<bigint>): AsyncIterable<JoinResponse>;
}

/** A message of a viewer for the worker, with the worker's LiveKit token if the viewer subscribes to video. */
export type ViewerMessage = Pick<ViewRequest, "request"> & Partial<Pick<ViewRequest, "publishToken">>;

/** A part of a message of a CDP client. */
export interface MessagePart {
  readonly data: Uint8Array;
  readonly last: boolean;
  /** Whether the client no longer needs the session. No message follows. */
  readonly done?: boolean;
}

/** Creates the messages to the worker. `closed` is sent only if the client closed its connection. */
async function* proxyCdpRequests(
  context: CommandContext,
  parts: AsyncIterable<MessagePart>,
): AsyncGenerator<ProxyCdpRequest> {
  yield create(ProxyCdpRequestSchema, { context });
  for await (const { data, last, done = false } of parts) {
    if (done) {
      yield create(ProxyCdpRequestSchema, { closed: true, done });
      return;
    }
    if (data.length > 0) yield create(ProxyCdpRequestSchema, { data, last });
  }
  yield create(ProxyCdpRequestSchema, { closed: true });
}

/**
 * Attaches the stream names to the first part. Attaches the command context to the first part, and again after the
 * control epoch has increased.
 */
async function* inputParts(
  names: Pick<InputPart, "streamId" | "clientId">,
  parts: AsyncIterable<SentPart>,
  readContext: () => Promise<CommandContext>,
): AsyncGenerator<InputPart> {
  let sent: CommandContext | undefined;
  for await (const part of parts) {
    const now = await readContext();
    const isNewer = !sent || now.controlEpoch > sent.controlEpoch;
    yield create(InputPartSchema, { ...part, ...(!sent && names), ...(isNewer && { context: now }) });
    if (isNewer) sent = now;
  }
}

async function* viewRequests(
  context: CommandContext,
  viewer: LiveViewer,
  messages: AsyncIterable<ViewerMessage>,
): AsyncGenerator<ViewRequest> {
  for await (const { request, ...rest } of messages) {
    yield create(ViewRequestSchema, {
      ...rest,
      ...(request && { request }),
      ...(request?.join && { context, viewer }),
    });
  }
}

async function* frameRequests(context: CommandContext, acks: AsyncIterable<bigint>): AsyncGenerator<ViewRequest> {
  yield create(ViewRequestSchema, { context });
  for await (const sequence of acks) yield create(ViewRequestSchema, { request: { ack: { sequence } } });
}

/** Yields the header and the first chunk separately, as clients expect. Workers send both in one message. */
async function* headerFirst(parts: AsyncIterable<CaptureStreamResponse>): AsyncGenerator<CaptureStreamResponse> {
  for await (const { header, data } of parts) {
    if (header) yield create(CaptureStreamResponseSchema, { header });
    if (data.length > 0) yield create(CaptureStreamResponseSchema, { data });
  }
}

export function createSessionCommands(
  commands: WorkerCommands,
  { db, routes }: { readonly db: Database; readonly routes: SessionRoutes },
): SessionCommands {
  const { method } = WorkerService;
  const conflictsWithTurn = { conflictsWithTurn: true };

  /** Waits until the row shows a pause that the worker has reported, so that a following GET returns it. */
  async function awaitPause({ principal: { accountId } }: SessionCaller, id: string): Promise<void> {
    const which = { id, accountId, milliseconds: reportTimeout };
    // Errors are ignored, because the navigation has succeeded in any case.
    await routes.awaitStatus(which, (status) => status !== "live").catch(() => undefined);
  }

  /** Returns the current command context. Throws if the session has ended. */
  async function currentContext(caller: SessionCaller, id: string): Promise<CommandContext> {
    return commandContext(caller, id, await routes.findRunning(id, caller.principal.accountId), 0);
  }

  return {
    async navigate(caller, request) {
      assertNavigable(request.url);
      const { id } = request;
      const answer = await commands.run(caller, id, fleetCommands.navigate, request, conflictsWithTurn);
      if (answer.status === SessionStatus.PAUSED) await awaitPause(caller, id);
      return answer;
    },
    interact: (caller, request) => commands.run(caller, request.id, fleetCommands.interact, request, conflictsWithTurn),
    wait: (caller, request) => commands.run(caller, request.id, fleetCommands.wait, request, conflictsWithTurn),
    observe: (caller, request) => commands.run(caller, request.id, fleetCommands.observe, request),
    read: (caller, request) => commands.run(caller, request.id, fleetCommands.read, request),
    async getState(caller, { id, brief = false }) {
      const state = await commands.run(caller, id, fleetCommands.getState, { brief });
      const { accountId } = caller.principal;
      if (state.control?.state === "human_control") {
        // The worker reports the control holder, but only the row has the expiry.
        const row = await findSession(db, id, accountId).catch(() => undefined);
        if (row?.control_lapses_at) state.control.lapsesAt = timestampFromDate(row.control_lapses_at);
      } else if (state.control) {
        const { row } = await routes.find(id, accountId);
        if (row.agent_session_id !== null) state.control.state = "agent_control";
      }
      return state;
    },
    captureStream: (caller, request) =>
      headerFirst(commands.stream(caller, request.id, fleetCommands.capture, request, { outlivesSession: true })),
    async stepPicture(caller, id, stepId) {
      return (await commands.run(caller, id, fleetCommands.getStepPicture, { stepId })).data;
    },
    thumbnails: (caller, id) => commands.stream(caller, id, fleetCommands.watchThumbnails, {}, { isEndless: true }),
    async notifyControl(caller, id) {
      // The cached route may have the previous epoch.
      routes.forget(id);
      await commands.run(caller, id, fleetCommands.setControl, {});
    },
    sendInput: (caller, id, request) => commands.run(caller, id, fleetCommands.sendInput, request),
    openInput(caller, id, clientId, listener) {
      const open: OpenInput = (streamId, parts, signal) =>
        commands.exchange({
          // Queued input is sent even after its client has left.
          caller: { ...caller, signal, deadline: Number.POSITIVE_INFINITY },
          id,
          method: method.streamInput,
          build: () => inputParts({ streamId, clientId }, parts, () => currentContext(caller, id)),
        });
      return new InputSender(open, listener);
    },
    readSelection: (caller, id) => commands.run(caller, id, fleetCommands.readSelection, {}),
    async answerQuestion(caller, id, answer) {
      await commands.run(caller, id, fleetCommands.answerQuestion, answer);
    },
    proxyCdp: (caller, id, messages) =>
      commands.exchange({
        caller,
        id,
        method: method.proxyCdp,
        build: (context) => proxyCdpRequests(context, messages),
      }),
    view: (caller, id, viewer, messages) =>
      commands.exchange({
        caller,
        id,
        method: method.view,
        build: (context) => viewRequests(context, viewer, messages),
      }),
    frames: (caller, id, acks) =>
      commands.exchange({ caller, id, method: method.readFrames, build: (context) => frameRequests(context, acks) }),
  };
}
