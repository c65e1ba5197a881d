import { Gauge, type Registry } from "prom-client";
import type { JoinRequest, JoinResponse } from "../gen/pilothouse/v1/live_pb.ts";
import type { Call } from "../kernel/call.ts";
import { BoundedQueue } from "../platform/bounded-queue.ts";
import { callerOf } from "../sessions/commands/session-caller.ts";
import type { Sessions } from "../sessions/sessions.ts";

/** Maximum unacknowledged frames of a viewer. With two, the next frame is in transit while the viewer shows one. */
const maxInFlight = 2;

/** Stream of a session's frames from its worker. */
interface FrameSource {
  readonly viewers: Set<ViewerFrames>;
  readonly acks: BoundedQueue<bigint>;
  readonly over: AbortController;
  acknowledged: bigint;
  last?: JoinResponse;
}

/** Reads the frames of each session once for all its viewers at this gateway. The fastest viewer sets the pace. */
export class SharedFrames {
  readonly #sessions: Pick<Sessions, "frames">;
  readonly #sources = new Map<string, FrameSource>();
  readonly #streams: Gauge;

  constructor(sessions: Pick<Sessions, "frames">, registry: Registry) {
    this.#sessions = sessions;
    this.#streams = new Gauge({
      name: "pilothouse_live_frame_streams",
      help: "Streams of live frames from workers, one per session that is watched.",
      registers: [registry],
    });
  }

  /** Adds a viewer. The first one starts the stream. */
  join(call: Call, id: string, viewer: ViewerFrames): FrameSource {
    let source = this.#sources.get(id);
    if (!source) {
      source = {
        viewers: new Set(),
        acks: new BoundedQueue({ items: 1 }),
        over: new AbortController(),
        acknowledged: 0n,
      };
      this.#sources.set(id, source);
      void this.#read(call, id, source);
    }
    source.viewers.add(viewer);
    return source;
  }

  /** Removes a viewer. The last one ends the stream. */
  leave(id: string, source: FrameSource, viewer: ViewerFrames): void {
    source.viewers.delete(viewer);
    if (source.viewers.size > 0) return;
    source.over.abort();
    this.#forget(id, source);
  }

  async #read(call: Call, id: string, source: FrameSource): Promise<void> {
    this.#streams.inc();
    const caller = { ...callerOf(call), signal: source.over.signal, deadline: Number.POSITIVE_INFINITY };
    try {
      for await (const frame of this.#sessions.frames(caller, id, source.acks)) {
        source.last = frame;
        for (const viewer of source.viewers) viewer.offer(frame);
      }
    } catch (thrown) {
      this.#forget(id, source);
      for (const viewer of source.viewers) viewer.outbox.fail(thrown);
    } finally {
      this.#streams.dec();
    }
  }

  #forget(id: string, source: FrameSource): void {
    if (this.#sources.get(id) === source) this.#sources.delete(id);
  }
}

/** Sends frames to one viewer. While two frames are unacknowledged, holds back the newest one. */
export class ViewerFrames {
  readonly outbox: BoundedQueue<JoinResponse>;
  readonly #shared: SharedFrames;
  readonly #call: Call;
  readonly #sessionId: string;
  #phase: "joining" | "joined" | "left" = "joining";
  #isHidden = false;
  /** Whether the viewer shows the LiveKit video. */
  #hasVideo = false;
  #source: FrameSource | undefined;
  #pending: JoinResponse | undefined;
  #inFlight: bigint[] = [];

  constructor(shared: SharedFrames, call: Call, sessionId: string, outbox: BoundedQueue<JoinResponse>) {
    this.#shared = shared;
    this.#call = call;
    this.#sessionId = sessionId;
    this.outbox = outbox;
  }

  /** Starts the frames, unless the viewer has left. */
  start(): void {
    if (this.#phase === "joining") this.#phase = "joined";
    this.#updateSubscription();
  }

  leave(): void {
    this.#phase = "left";
    this.#updateSubscription();
  }

  /** Applies a message of the viewer. */
  receive({ join, ack, visibility, subscribe }: JoinRequest): void {
    if (ack) this.#acknowledge(ack.sequence);
    if (join) this.#isHidden = join.hidden;
    if (visibility) {
      this.#isHidden = visibility.hidden;
      // A hidden viewer may never acknowledge its frames, so they no longer count as in flight.
      this.#inFlight = [];
    }
    if (subscribe) this.#hasVideo = subscribe.media === "livekit" && subscribe.shown;
    if (visibility || subscribe) this.#updateSubscription();
  }

  /** Sends a frame, or keeps it until an earlier one is acknowledged. */
  offer(frame: JoinResponse): void {
    this.#pending = frame;
    this.#send();
  }

  /** Joins the shared stream and sends its last frame if the viewer shows frames. Leaves the stream otherwise. */
  #updateSubscription(): void {
    if (this.#phase === "joined" && !this.#isHidden && !this.#hasVideo) {
      this.#source ??= this.#shared.join(this.#call, this.#sessionId, this);
      if (this.#source.last) this.offer(this.#source.last);
    } else if (this.#source) {
      this.#shared.leave(this.#sessionId, this.#source, this);
      this.#source = this.#pending = undefined;
    }
  }

  #acknowledge(sequence: bigint): void {
    this.#inFlight = this.#inFlight.filter((sent) => sent > sequence);
    if (this.#source && sequence > this.#source.acknowledged) {
      this.#source.acknowledged = sequence;
      this.#source.acks.pushDroppingOldest(sequence);
    }
    this.#send();
  }

  #send(): void {
    if (!this.#pending || this.#inFlight.length >= maxInFlight) return;
    this.#inFlight.push(this.#pending.frame?.sequence ?? 0n);
    // Not awaited: of all messages in the queue, at most `maxInFlight` are frames.
    void this.outbox.push(this.#pending);
    this.#pending = undefined;
  }
}
