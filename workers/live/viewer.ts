import { create } from "@bufbuild/protobuf";
import {
  type JoinRequest,
  type JoinResponse,
  JoinResponseSchema,
  type LiveFrame,
  type LiveHello,
  type LiveState,
  type LiveViewer,
  type LiveViewers,
} from "../../src/gen/pilothouse/v1/live_pb.ts";

/** Maximum number of frames in flight to a viewer. With two, the next frame travels while the viewer shows the last. */
const maxInFlight = 2;

/** Pending messages, the newest of each kind, in sending order. */
interface PendingMessages {
  hello?: LiveHello;
  state?: LiveState;
  viewers?: LiveViewers;
  heartbeat?: object;
  frame?: LiveFrame;
}

/**
 * A viewer of the session, or a gateway that reads the frames for its viewers. Holds at most one pending message of
 * each kind and two frames in flight, even if the reader is slow.
 */
export class Viewer {
  readonly who: LiveViewer;
  isHidden: boolean;
  /** Whether the viewer requested LiveKit. */
  #wantsRoom = false;
  readonly #pending: PendingMessages = {};
  #inFlight: bigint[] = [];
  #wake: (() => void) | undefined;
  #end: { readonly failure?: unknown } | undefined;

  constructor(who: LiveViewer, isHidden: boolean) {
    this.who = who;
    this.isHidden = isHidden;
  }

  /** Whether the viewer is visible and requested LiveKit. */
  get isSubscribed(): boolean {
    return !this.isHidden && this.#wantsRoom;
  }

  /** Whether a frame can be sent now. */
  get wantsFrame(): boolean {
    return this.#inFlight.length < maxInFlight;
  }

  /** Queues messages, replacing pending ones of the same kind. */
  send(messages: PendingMessages): void {
    Object.assign(this.#pending, messages);
    this.#wake?.();
  }

  receive({ ack, visibility, heartbeat, subscribe }: JoinRequest): void {
    if (ack) this.#inFlight = this.#inFlight.filter((sequence) => sequence > ack.sequence);
    if (visibility) this.isHidden = visibility.hidden;
    if (subscribe) this.#wantsRoom = subscribe.media === "livekit";
    if (heartbeat) this.#pending.heartbeat = {};
    this.#wake?.();
  }

  /** Ends the messages, with a failure if given. */
  leave(end: { readonly failure?: unknown } = {}): void {
    this.#end ??= end;
    this.#wake?.();
  }

  /**
   * Yields the pending messages as fast as the viewer reads, until `leave`. Throws the failure passed to `leave`, if
   * any.
   */
  async *messages(): AsyncGenerator<JoinResponse> {
    while (!this.#end) {
      const message = this.#next();
      if (message) {
        yield message;
        continue;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    if ("failure" in this.#end) throw this.#end.failure;
  }

  #next(): JoinResponse | undefined {
    for (const kind of ["hello", "state", "viewers", "heartbeat"] as const) {
      const { [kind]: value } = this.#pending;
      if (!value) continue;
      delete this.#pending[kind];
      return create(JoinResponseSchema, { [kind]: value });
    }
    const { frame } = this.#pending;
    if (!frame || !this.wantsFrame) return undefined;
    delete this.#pending.frame;
    this.#inFlight.push(frame.sequence);
    return create(JoinResponseSchema, { frame });
  }
}
