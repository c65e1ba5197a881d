import type { Thumbnail, WatchThumbnailsRequest } from "../../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../kernel/call.ts";
import { BoundedQueue } from "../../platform/bounded-queue.ts";
import type { Clock } from "../../platform/clock.ts";
import { asFailure, type Failure } from "../../platform/errors.ts";
import type { Sessions } from "../sessions.ts";
import { callerOf, type SessionCaller } from "./session-caller.ts";

/** Milliseconds between attempts to follow a session, such as while it is launched or its worker does not respond. */
const retryEvery = 2_000;

/** Failures after which a session has no more pictures. Workers of the previous release do not support pictures. */
const finals: ReadonlySet<string> = new Set(["session-destroyed", "not-found", "driver-not-integrated"]);

const isFinal = ({ slug }: Failure): boolean => finals.has(slug);

export interface ThumbnailParts {
  readonly sessions: Sessions;
  readonly clock: Clock;
}

type WatchThumbnails = (call: Call, request: WatchThumbnailsRequest) => AsyncIterable<Thumbnail>;

/** Creates the method that streams small pictures of several sessions. */
export function createThumbnails({ sessions, clock }: ThumbnailParts): WatchThumbnails {
  /** Returns whether a session runs. Throws `not-found` if the account has no such session. */
  async function isRunning(caller: SessionCaller, id: string): Promise<boolean> {
    try {
      await sessions.assertRunning(caller, id);
      return true;
    } catch (thrown) {
      if (asFailure(thrown).slug === "session-destroyed") return false;
      throw thrown;
    }
  }

  /** Forwards the pictures of a session until the session ends. A reader that lags behind misses pictures. */
  async function pump(caller: SessionCaller, id: string, outbox: BoundedQueue<Thumbnail>): Promise<void> {
    while (!caller.signal.aborted) {
      try {
        for await (const picture of sessions.thumbnails(caller, id)) await outbox.push(picture);
      } catch (thrown) {
        if (isFinal(asFailure(thrown))) return;
      }
      await clock.sleep(retryEvery, caller.signal);
    }
  }

  return async function* watch(call, { sessionId: ids }) {
    const stop = new AbortController();
    const caller = { ...callerOf(call), signal: AbortSignal.any([call.signal, stop.signal]) };
    const outbox = new BoundedQueue<Thumbnail>({ items: 1 });
    try {
      const running = await Promise.all(ids.map((id) => isRunning(caller, id)));
      const pumps = ids.filter((_, index) => running[index]).map((id) => pump(caller, id, outbox));
      Promise.all(pumps).then(
        () => outbox.end(),
        (error: unknown) => outbox.fail(error),
      );
      yield* outbox;
    } finally {
      stop.abort();
    }
  };
}
