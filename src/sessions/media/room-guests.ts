import { setInterval as every } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { JoinRequestSchema, type JoinResponse, LiveViewerSchema } from "../../gen/pilothouse/v1/live_pb.ts";
import type { Bearers } from "../../identity/bearers.ts";
import type { Call } from "../../kernel/call.ts";
import { BoundedQueue } from "../../platform/bounded-queue.ts";
import type { Config } from "../../platform/config.ts";
import { raceSignal } from "../../platform/deadline.ts";
import { Failure, fail } from "../../platform/errors.ts";
import type { Ids } from "../../platform/ids.ts";
import { callerOf } from "../commands/session-caller.ts";
import type { SessionCommands, ViewerMessage } from "../commands/session-commands.ts";
import { type Admission, createParticipants, type Participant } from "./livekit.ts";

/**
 * Milliseconds between checks of a guest. Once the time to join has passed, a guest that is absent in two consecutive
 * checks has left.
 */
const pollEvery = 5_000;

export interface RoomGuestsParts {
  readonly sessions: Pick<SessionCommands, "view">;
  readonly bearers: Pick<Bearers, "read" | "watch">;
  readonly ids: Ids;
  readonly config: Pick<Config, "liveKit">;
}

/** A viewer that is only in the media room, without a `Join` stream. */
export interface RoomGuest {
  readonly sessionId: string;
  /** Display name, shown to the other viewers. */
  readonly name: string;
  /** Scope that the bearer must keep while the guest watches. */
  readonly scope: string;
}

export interface RoomGuests {
  /**
   * Publishes a session to its room for a guest, and returns the credentials to join. Publishing ends when the guest
   * leaves or does not join in time. The guest is removed when its bearer loses the scope or is no longer valid, or the
   * session or this gateway ends. Throws `feature-unavailable` and `tier-limit`.
   */
  invite(call: Call, guest: RoomGuest): Promise<Admission>;
  stop(): void;
}

export function createRoomGuests({ sessions, bearers, ids, config }: RoomGuestsParts): RoomGuests {
  const participants = config.liveKit && createParticipants(config.liveKit);
  const all = new Set<AbortController>();

  /** Starts publishing a session, and returns the credentials and the stream of session messages. */
  async function startPublishing(
    call: Call,
    { sessionId, name }: RoomGuest,
    participant: Participant,
    id: string,
    over: AbortController,
  ) {
    const viewer = create(LiveViewerSchema, { id, clientId: `view:${id}`, name, canControl: false });
    const caller = { ...callerOf(call), signal: over.signal, deadline: Number.POSITIVE_INFINITY };
    const messages = new BoundedQueue<ViewerMessage>({ items: 3 });
    const sendRequest = (request: MessageInitShape<typeof JoinRequestSchema>, publishToken = "") =>
      void messages.push({ request: create(JoinRequestSchema, request), publishToken });
    // Joins hidden, so that the worker sends no frames.
    sendRequest({ join: { hidden: true } });
    const responses = sessions.view(caller, sessionId, viewer, messages)[Symbol.asyncIterator]();
    const { value } = await raceSignal(responses.next(), call.signal);
    if (value?.hello?.media !== "livekit")
      throw fail(
        "feature-unavailable",
        {},
        { detail: "the session is not published as video: watch through a view link" },
      );
    const admission = await participant.admit();
    sendRequest({ subscribe: { media: "livekit", shown: true } }, admission.publishToken);
    sendRequest({ visibility: { hidden: false } });
    return { admission, responses };
  }

  return {
    async invite(call, guest) {
      if (!participants) {
        const detail = "this deployment has no media server: watch through a view link";
        throw fail("feature-unavailable", {}, { detail });
      }
      const id = ids.next("vwr");
      const participant = participants(guest.sessionId, id);
      const over = new AbortController();
      all.add(over);
      const unwatch = bearers.watch(bearers.read(call.header("authorization")), (verdict) => {
        if (!("principal" in verdict && verdict.principal.scopes.has(guest.scope))) over.abort();
      });
      const end = () => {
        unwatch();
        all.delete(over);
        over.abort();
        participant.leave();
      };
      try {
        const { admission, responses } = await startPublishing(call, guest, participant, id, over);
        void superviseGuest(participant, admission.joinsWithin, over);
        void drain(participant, responses).finally(end);
        return admission;
      } catch (thrown) {
        end();
        throw thrown;
      }
    },
    stop() {
      for (const over of all) over.abort();
    },
  };
}

/** Reads the session's messages until they end. If the session has ended, closes the room. */
async function drain(participant: Participant, responses: AsyncIterator<JoinResponse>): Promise<void> {
  try {
    while (!(await responses.next()).done);
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.slug === "session-destroyed") participant.close();
  }
}

/** Aborts `over` when the guest has left the room, or has not joined in time. */
async function superviseGuest(participant: Participant, joinsWithin: number, over: AbortController): Promise<void> {
  const joinDeadline = performance.now() + joinsWithin;
  let missed = 0;
  try {
    for await (const _ of every(pollEvery, undefined, { signal: over.signal, ref: false })) {
      missed = (await participant.isInRoom()) ? 0 : missed + 1;
      if (missed > 1 && performance.now() > joinDeadline) over.abort();
    }
  } catch {
    // `over` was aborted.
  }
}
