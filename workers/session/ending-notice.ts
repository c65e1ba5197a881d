import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type SessionEndedReason, SessionEndingSoonEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { EventFeed } from "../pages/event-feed.ts";

/** Milliseconds from the notice to the planned end. */
const noticeMs = 60_000;

/** Sends `session.ending_soon` ahead of the earliest planned end of a session. */
export class EndingNotice {
  readonly #feed: Pick<EventFeed, "publish">;
  /** Planned ends by reason, in milliseconds since the epoch. */
  readonly #ends = new Map<SessionEndedReason, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(feed: Pick<EventFeed, "publish">) {
    this.#feed = feed;
  }

  /** Replaces the planned end that has this reason. */
  plan(reason: SessionEndedReason, remainingMs: number): void {
    this.#ends.set(reason, Date.now() + remainingMs);
    this.stop();
    const [endedReason, at] = [...this.#ends].reduce((first, other) => (other[1] < first[1] ? other : first));
    const send = () => this.#feed.publish(SessionEndingSoonEventSchema, { endedReason, endsAt: timestampFromMs(at) });
    this.#timer = setTimeout(send, at - Date.now() - noticeMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
