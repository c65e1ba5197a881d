import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CommandContext,
  type InputPart,
  InputPartSchema,
  type LendRequest,
  LendRequestSchema,
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
  type SessionState,
  SessionStatus,
  type WaitRequest,
  type WaitResponse,
} from "../../gen/pilothouse/v1/session_pb.ts";
import { fleetCommands } from "../../platform/grpc/fleet-commands.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { findSession } from "../store.ts";
import { InputLine, type InputListener, type OpenInput, type SentPart } from "./input-line.ts";
import { assertNavigable } from "./page-address.ts";
import type { PersonCaller, SessionCaller } from "./session-caller.ts";
import type { SessionRoutes } from "./session-routes.ts";
import { commandContext, type WorkerCommands } from "./worker-commands.ts";

/** Milliseconds in which a worker's report is applied, at the latest. It mostly takes 20 to 120. */
const reportPatience = 1_000;

/** The commands of a session. Those of SessionService find the session by the `id` of the request. */
export interface SessionCommands {
  navigate(caller: SessionCaller, request: NavigateRequest): Promise<NavigateResponse>;
  interact(caller: SessionCaller, request: InteractRequest): Promise<InteractResponse>;
  wait(caller: SessionCaller, request: WaitRequest): Promise<WaitResponse>;
  observe(caller: SessionCaller, request: ObserveRequest): Promise<Observation>;
  getState(caller: SessionCaller, request: Pick<GetSessionStateRequest, "id">): Promise<SessionState>;
  captureStream(caller: SessionCaller, request: CaptureRequest): AsyncIterable<CaptureStreamResponse>;
  /** Gives the picture of the page before a step, a JPEG, where the session has one. */
  stepPicture(caller: SessionCaller, id: string, stepId: string): Promise<Uint8Array | undefined>;
  /** Tells the worker who holds control; resolves when nothing of who held it before reaches the page any more. */
  tellControl(caller: SessionCaller, id: string): Promise<void>;
  /** Hands a person's input to the page, as far as there is room, and says how much of it. */
  sendInput(caller: PersonCaller, id: string, request: SendInputRequest): Promise<SendInputResponse>;
  /** Opens a line for the input of a person who sends much; it begins with the first of it. */
  openInput(caller: SessionCaller, id: string, clientId: string, listener: InputListener): InputLine;
  /** Reads the text that is selected, for the person who holds control. */
  readSelection(caller: SessionCaller, id: string): Promise<Selection>;
  /** Answers what a page asks, for the person who holds control. */
  answerQuestion(caller: SessionCaller, id: string, answer: LiveAnswer): Promise<void>;
  /** Lends the browser to a client that speaks the DevTools protocol; the first answer says that it is there. */
  lend(caller: SessionCaller, id: string, messages: AsyncIterable<MessagePart>): AsyncIterable<CdpResponse>;
  /** Shows the session to a viewer; its first message joins. */
  view(
    caller: SessionCaller,
    id: string,
    viewer: LiveViewer,
    messages: AsyncIterable<ViewerMessage>,
  ): AsyncIterable<JoinResponse>;
}

/** A message of a viewer for the session's machine; where it wants pictures over LiveKit, with the machine's own token. */
export type ViewerMessage = Pick<ViewRequest, "request"> & Partial<Pick<ViewRequest, "publishToken">>;

/** A part of a message of such a client. */
export interface MessagePart {
  readonly data: Uint8Array;
  readonly last: boolean;
}

/** Only a client that closes its connection is said to have closed it. */
async function* lendRequests(context: CommandContext, parts: AsyncIterable<MessagePart>): AsyncGenerator<LendRequest> {
  yield create(LendRequestSchema, { context });
  for await (const { data, last } of parts) {
    if (data.length > 0) yield create(LendRequestSchema, { data, last });
  }
  yield create(LendRequestSchema, { closed: true });
}

/** Each worker hears of a change of control by all that it is sent: input that has to know of one says it. */
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

/** Clients get the header by itself, which a worker sends with the first chunk: most captures are one message on their way here. */
async function* headerFirst(parts: AsyncIterable<CaptureStreamResponse>): AsyncGenerator<CaptureStreamResponse> {
  for await (const { header, data } of parts) {
    if (header) yield create(CaptureStreamResponseSchema, { header });
    if (data.length > 0) yield create(CaptureStreamResponseSchema, { data });
  }
}

/** Makes the commands. */
export function createSessionCommands(
  commands: WorkerCommands,
  { db, routes }: { readonly db: Database; readonly routes: SessionRoutes },
): SessionCommands {
  const { method } = WorkerService;
  const conflictsWithTurn = { conflictsWithTurn: true };

  /** The worker has said that the session is paused, and its report of that is on its way: GET is to say the same. */
  async function awaitPause({ principal: { accountId } }: SessionCaller, id: string): Promise<void> {
    const which = { id, accountId, milliseconds: reportPatience };
    // The page was navigated all the same.
    await routes.awaitStatus(which, (status) => status !== "live").catch(() => undefined);
  }

  /** What a command to the worker would say now of who steers. Throws once the session has ended. */
  async function contextNow(caller: SessionCaller, id: string): Promise<CommandContext> {
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
    async getState(caller, { id }) {
      const state = await commands.run(caller, id, fleetCommands.getState, { id });
      const { accountId } = caller.principal;
      if (state.control?.state === "human_control") {
        // The worker knows who holds control, and the row until when.
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
    async tellControl(caller, id) {
      // The route that this gateway knows may be of the epoch before.
      routes.forget(id);
      await commands.run(caller, id, fleetCommands.setControl, {});
    },
    sendInput: (caller, id, request) => commands.run(caller, id, fleetCommands.sendInput, request),
    openInput(caller, id, clientId, listener) {
      const open: OpenInput = (streamId, parts, signal) =>
        commands.exchange({
          // The last of the input is that of a client which has gone.
          caller: { ...caller, signal, deadline: Number.POSITIVE_INFINITY },
          id,
          method: method.streamInput,
          build: () => inputParts({ streamId, clientId }, parts, () => contextNow(caller, id)),
        });
      return new InputLine(open, listener);
    },
    readSelection: (caller, id) => commands.run(caller, id, fleetCommands.readSelection, {}),
    async answerQuestion(caller, id, answer) {
      await commands.run(caller, id, fleetCommands.answerQuestion, answer);
    },
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
