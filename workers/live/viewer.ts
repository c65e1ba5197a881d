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

/** How many frames may be on the way to a viewer: with two the next one travels while it shows the one before. */
const mostUnderWay = 2;

/** What a viewer is told, of each kind only the newest; in this order. */
interface News {
  hello?: LiveHello;
  state?: LiveState;
  viewers?: LiveViewers;
  heartbeat?: object;
  frame?: LiveFrame;
}

/** One who watches. Whatever it does, there is one message of each kind for it here, and two frames on their way. */
export class Viewer {
  readonly who: LiveViewer;
  isHidden: boolean;
  /** It wants its pictures over LiveKit; and it has them. */
  #wantsRoom = false;
  #hasVideo = false;
  readonly #news: News = {};
  #underWay: bigint[] = [];
  #wake: (() => void) | undefined;
  #end: { readonly failure?: unknown } | undefined;

  constructor(who: LiveViewer, isHidden: boolean) {
    this.who = who;
    this.isHidden = isHidden;
  }

  /** Whether it is in sight, and shows frames. */
  get seesFrames(): boolean {
    return !this.isHidden && !this.#hasVideo;
  }

  /** Whether it is in sight, and wants its pictures over LiveKit. */
  get isSubscribed(): boolean {
    return !this.isHidden && this.#wantsRoom;
  }

  /** Whether a frame would be sent now. */
  get wantsFrame(): boolean {
    return this.seesFrames && this.#underWay.length < mostUnderWay;
  }

  /** Tells it something, in place of what it was to be told of the kind before. */
  tell(news: News): void {
    Object.assign(this.#news, news);
    this.#wake?.();
  }

  /** Takes what it says of itself. */
  take({ ack, visibility, heartbeat, subscribe }: JoinRequest): void {
    if (ack) this.#underWay = this.#underWay.filter((sequence) => sequence > ack.sequence);
    if (visibility) {
      this.isHidden = visibility.hidden;
      // What was sent to a page out of sight may never be shown.
      this.#underWay = [];
    }
    if (subscribe) {
      this.#wantsRoom = subscribe.media === "livekit";
      this.#hasVideo = this.#wantsRoom && subscribe.shown;
    }
    if (heartbeat) this.#news.heartbeat = {};
    this.#wake?.();
  }

  /** Ends its messages, by a failure where there is one. */
  leave(end: { readonly failure?: unknown } = {}): void {
    this.#end ??= end;
    this.#wake?.();
  }

  /** Gives what it is told, as fast as it reads. */
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
      const { [kind]: value } = this.#news;
      if (!value) continue;
      delete this.#news[kind];
      return create(JoinResponseSchema, { [kind]: value });
    }
    const { frame } = this.#news;
    if (!frame || !this.wantsFrame) return undefined;
    delete this.#news.frame;
    this.#underWay.push(frame.sequence);
    return create(JoinResponseSchema, { frame });
  }
}
