import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { SessionFileSchema } from "../gen/pilothouse/v1/file_pb.ts";
import {
  type JoinRequest,
  JoinRequestSchema,
  type JoinResponse,
  JoinResponseSchema,
  type LiveJoin,
  type LiveService,
  type LiveViewer,
  LiveViewerSchema,
} from "../gen/pilothouse/v1/live_pb.ts";
import { SessionEndedReason } from "../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { bytesOfBody } from "../kernel/request-body.ts";
import { BoundedQueue } from "../platform/bounded-queue.ts";
import type { Config } from "../platform/config.ts";
import { asFailure, Failure, fail, failFields } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { toProblem } from "../platform/problem.ts";
import type { ViewerMessage } from "../sessions/commands/session-commands.ts";
import { announcedBytesOf, answerFile, changeFile, finishing } from "../sessions/files/file-calls.ts";
import { createParticipants, type Participant } from "../sessions/media/livekit.ts";
import { toStoredReason } from "../sessions/session-message.ts";
import type { Sessions } from "../sessions/sessions.ts";
import { admitPerson, type OneViewerParts } from "../sessions/view-links/one-viewer.ts";
import { type ControlHandle, type ControlHandleParts, createControlHandle } from "./control-handle.ts";
import { assertOwnSession, controllerOf, mayControl, viewerClientId, viewerIdOf } from "./person.ts";
import { SharedFrames, ViewerFrames } from "./shared-frames.ts";

export interface LiveServiceParts extends ControlHandleParts, OneViewerParts, Pick<PlatformParts, "ids" | "metrics"> {
  readonly sessions: ControlHandleParts["sessions"] &
    Pick<Sessions, "assertRunning" | "agentOf" | "view" | "frames" | "files">;
  readonly config: Pick<Config, "errorsBase" | "liveKit">;
}

/** Maximum number of messages queued for a viewer, at most two of them frames. */
const maxBuffered = { items: 16 };

function viewerOf(call: Call, { name }: LiveJoin, id: string): LiveViewer {
  const { principal } = call;
  // Other viewers see the name, so the name of a key or user is not used, only that of a link.
  const linkName = principal.sessionId === undefined ? "" : principal.name;
  const clientId = viewerClientId(call, id);
  return create(LiveViewerSchema, { id, clientId, name: name || linkName || "Viewer", canControl: mayControl(call) });
}

/** Converts the end of the session into a response; rethrows other errors. */
function endedOf(thrown: unknown): JoinResponse {
  if (!(thrown instanceof Failure) || thrown.slug !== "session-destroyed") throw thrown;
  const { ended_reason: name } = thrown.extensions;
  const reason = Object.values(SessionEndedReason).find((each) => toStoredReason(each) === name);
  return create(JoinResponseSchema, { ended: reason === undefined ? {} : { reason } });
}

export function createLiveService(parts: LiveServiceParts): ServiceImplementation<typeof LiveService> {
  const { ids, sessions, controlHeartbeats, config, metrics } = parts;
  const participants = config.liveKit && createParticipants(config.liveKit);
  const sharedFrames = new SharedFrames(sessions, metrics);

  const refusalOf = (call: Call, thrown: unknown) => toProblem(asFailure(thrown), config.errorsBase, call.requestId);

  async function applyControl(control: ControlHandle, message: JoinRequest): Promise<JoinResponseInit> {
    const { takeControl, handBack, input, command, copy, answer } = message;
    if (takeControl) await control.take();
    if (handBack) await control.handBack();
    if (input) await control.send(input);
    if (command) await control.command(command);
    if (answer) await control.answer(answer);
    return copy ? { clipboard: { text: await control.copy() } } : {};
  }

  /** Executes the control messages of a viewer. Yields the messages that the worker needs. */
  async function* controlRequests(
    call: Call,
    { control, participant, frames }: ViewerParts,
    messages: AsyncIterable<JoinRequest>,
    outbox: Outbox,
  ): AsyncGenerator<ViewerMessage> {
    async function send(pending: Promise<JoinResponseInit>): Promise<void> {
      const init = await pending.catch((thrown: unknown) => ({ refused: refusalOf(call, thrown) }));
      if (Object.keys(init).length > 0) await outbox.push(create(JoinResponseSchema, init));
    }
    const answer = (message: JoinRequest): Promise<void> => send(applyControl(control, message));
    async function* subscribe(request: JoinRequest): AsyncGenerator<ViewerMessage> {
      const { media, shown } = request.subscribe ?? {};
      if (media !== "livekit" || shown) return yield { request };
      const admission = participant
        ? participant.admit()
        : Promise.reject(fail("feature-unavailable", {}, { detail: noMediaServer }));
      await send(admission.then(({ url, token }) => ({ room: { url, token } })));
      const admitted = await admission.catch(() => undefined);
      if (admitted) yield { request, publishToken: admitted.publishToken };
    }
    let hasJoined = false;
    for await (const message of messages) {
      const { join, visibility, heartbeat, command, subscribe: subscription } = message;
      if (hasJoined && join) throw failFields("validation-failed", { join: "is allowed in the first message only" });
      hasJoined = true;
      if (heartbeat) control.recordHeartbeat();
      frames.receive(message);
      // The join message is reduced: the worker must not receive the viewer's secrets.
      if (join) yield { request: create(JoinRequestSchema, { join: { hidden: join.hidden } }) };
      else if (visibility || heartbeat) yield { request: message };
      else if (subscription) yield* subscribe(message);
      // A page may load slowly, so commands do not block later input.
      else if (command) void answer(message);
      else await answer(message);
    }
  }

  /** Adds what the worker does not know: whether an agent drives the session, and whether there is a media server. */
  async function complete(call: Call, id: string, response: JoinResponse): Promise<JoinResponse> {
    const { control } = response.state ?? {};
    if (response.hello && !participants) response.hello.media = "frames";
    if (control?.state === "api" && (await sessions.agentOf(call, id)) !== null) control.state = "agent_control";
    return response;
  }

  async function* relay(call: Call, id: string, viewer: LiveViewer, messages: AsyncIterable<JoinRequest>) {
    const outbox: Outbox = new BoundedQueue(maxBuffered);
    const control = createControlHandle(parts, call, {
      sessionId: id,
      clientId: viewer.clientId,
      onReceipt: async ({ accepted, dropped }) =>
        outbox.push(create(JoinResponseSchema, { input: { accepted, dropped } })),
      onFailed: async (thrown) => outbox.push(create(JoinResponseSchema, { refused: refusalOf(call, thrown) })),
    });
    const participant = participants?.(id, viewer.id);
    const frames = new ViewerFrames(sharedFrames, call, id, outbox);
    async function watch(): Promise<void> {
      for await (const response of sessions.view(
        call,
        id,
        viewer,
        controlRequests(call, { control, participant, frames }, messages, outbox),
      )) {
        control.update(response.state?.control);
        if (response.frame) frames.offer(response);
        else await outbox.push(await complete(call, id, response));
        if (response.hello) frames.start();
      }
    }
    watch().then(
      () => outbox.end(),
      (thrown: unknown) => outbox.fail(thrown),
    );
    try {
      yield* outbox;
    } catch (thrown) {
      const ended = endedOf(thrown);
      participant?.close();
      yield ended;
    } finally {
      frames.leave();
      participant?.leave();
      await control.close();
    }
  }

  return {
    async join(call, { join }) {
      if (!join) throw failFields("validation-failed", { join: "is required in the first message" });
      const { sessionId: own } = call.principal;
      const id = join.sessionId || own;
      if (id === undefined)
        throw failFields("validation-failed", { "join.session_id": "is required without a view link" });
      assertOwnSession(call, id);
      await sessions.assertRunning(call, id);
      await admitPerson(parts, call, join.viewerKey);
      const { viewerKey } = join;
      const viewerId = viewerKey === undefined ? ids.next("vwr") : viewerIdOf(id, viewerKey);
      const viewer = viewerOf(call, join, viewerId);
      return { relay: (messages) => relay(call, id, viewer, messages) };
    },
    async upload(call, { id, name, content }) {
      const controller = await controllerOf(parts, call, id);
      const announcedBytes = announcedBytesOf(call);
      const { file } = await changeFile(parts, call, { id, name }, (write) =>
        sessions.files.put(controller, id, {
          name,
          announcedBytes,
          data: finishing(bytesOfBody(call, content), write),
        }),
      );
      controlHeartbeats.note(id, controller.clientId, true);
      return file ?? create(SessionFileSchema);
    },
    async *download(call, { id, name }) {
      yield* answerFile(call, sessions.files.read(await controllerOf(parts, call, id), id, name));
    },
  };
}

type Outbox = BoundedQueue<JoinResponse>;
type JoinResponseInit = MessageInitShape<typeof JoinResponseSchema>;

/** Objects that belong to one viewer. */
interface ViewerParts {
  readonly control: ControlHandle;
  /** Participant in the session's media room; undefined without a media server. */
  readonly participant: Participant | undefined;
  readonly frames: ViewerFrames;
}

const noMediaServer = "this deployment has no media server: subscribe to frames";
