import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type LiveFrame, LiveFrameSchema } from "../../src/gen/pilothouse/v1/live_pb.ts";
import type { CdpSession, WireEvents } from "../cdp/cdp-session.ts";
import { readImageSize } from "../driver/capture/image-size.ts";
import type { PageBook } from "../pages/page-book.ts";
import type { Tab } from "../pages/tab.ts";

/** Milliseconds from one frame to the next, at the least: 15 a second. */
const frameGap = 66;

/**
 * One frame is under way at a time, and the browser keeps the newest after it: so what a page shows last is never left out.
 * At this quality text is still sharp, and a picture of 1280x720 has some 60 kB; none has more than some 1.5 MB.
 */
const how = { format: "jpeg", quality: 55, maxWidth: 1_600, maxHeight: 1_600 } as const;
const pace = { maxFramesInFlight: 1, sendLastFrame: true };

/** Milliseconds until a page is asked again that has refused to begin. */
const beginGap = 50;

/** Milliseconds from a change of the page's size, after which no other has come, to its being pictured anew. */
const resizeGap = 100;

/** A page whose pictures have another size than it, made anew as often as this, is shown as it is. */
const mostTries = 3;

type ShownFrame = WireEvents["Page.screencastFrame"];

/** Who hears of frames. */
export interface FrameListener {
  onFrame(frame: LiveFrame): void;
  /** Whether the next frame is of use to anybody. While it is not, the browser makes none. */
  wantsFrame(): boolean;
}

/** Pictures of whatever page is active, made by the browser while they are wanted. */
export class Screencast {
  readonly #pages: PageBook;
  readonly #listener: FrameListener;
  /** Our sessions of pages whose frames are heard of. */
  readonly #heard = new WeakSet<CdpSession>();
  #isOn = false;
  #tab: Tab | undefined;
  #sequence = 0n;
  /** The frame that is yet to be acknowledged, before which no other comes. */
  #owed: number | undefined;
  #nextAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #resizeTimer: NodeJS.Timeout | undefined;
  /** How often pictures were made anew because none had its page's size. */
  #tries = 0;
  #last: LiveFrame | undefined;

  constructor(pages: PageBook, listener: FrameListener) {
    this.#pages = pages;
    this.#listener = listener;
  }

  /** The page as it was last seen. A page that stands still makes no other picture. */
  get last(): LiveFrame | undefined {
    return this.#last;
  }

  /** Begins, or ends, to make pictures. */
  turn(isOn: boolean): void {
    this.#isOn = isOn;
    this.follow();
  }

  /** Goes on with the active page, if it has become another, or has got another renderer. */
  follow(): void {
    const page = this.#isOn ? this.#pages.shown : undefined;
    const tab = page?.isCrashed ? undefined : page?.tab;
    if (tab === this.#tab) return;
    this.#stop();
    this.#last = undefined;
    this.#tab = tab;
    if (tab) this.#begin(tab);
  }

  /** Lets the next frame come, when it is time and somebody wants it. */
  goOn(): void {
    if (this.#owed === undefined || !this.#tab || !this.#listener.wantsFrame()) return;
    clearTimeout(this.#timer);
    const wait = this.#nextAt - performance.now();
    if (wait > 0) {
      this.#timer = setTimeout(() => this.goOn(), wait);
      return;
    }
    send(this.#tab.session.send("Page.screencastFrameAck", { sessionId: this.#owed }));
    this.#owed = undefined;
  }

  #stop(): void {
    if (this.#tab) send(this.#tab.session.send("Page.stopScreencast"));
    clearTimeout(this.#timer);
    clearTimeout(this.#resizeTimer);
    this.#tab = undefined;
    this.#owed = undefined;
  }

  #begin(tab: Tab): void {
    const { session } = tab;
    if (!this.#heard.has(session)) {
      this.#heard.add(session);
      session.on("Page.screencastFrame", (frame) => this.#take(session, frame));
      session.on("Page.frameResized", () => this.#startAnew(session));
    }
    // A tab behind another paints nothing in a browser that has windows.
    send(session.send("Page.bringToFront"));
    session.send("Page.startScreencast", { ...how, ...pace }).catch(() => {
      // A page whose document is just giving way to the next one refuses ("Not attached to an active page").
      if (tab === this.#tab) this.#timer = setTimeout(() => this.#begin(tab), beginGap);
    });
  }

  /** One picture of twenty that should follow a change of size never comes: of a page that stands still, none would. */
  #startAnew(session: CdpSession, tries = 0): void {
    if (session !== this.#tab?.session) return;
    clearTimeout(this.#resizeTimer);
    this.#resizeTimer = setTimeout(() => {
      this.#tries = tries;
      this.#stop();
      this.follow();
    }, resizeGap);
  }

  #take(session: CdpSession, { data, metadata, sessionId }: ShownFrame): void {
    // The last frames of a page come when another one is active already.
    const page = this.#pages.shown;
    if (session !== this.#tab?.session || page?.tab !== this.#tab) return;
    const { deviceWidth, deviceHeight, timestamp } = metadata;
    const bytes = Buffer.from(data, "base64");
    if (hasSize(bytes, deviceWidth, deviceHeight)) this.#tries = 0;
    else if (this.#tries < mostTries) {
      // The first pictures of a new page are now and then still of the window that it was made in: clicks on them go astray.
      this.#startAnew(session, this.#tries + 1);
      return;
    }
    this.#sequence += 1n;
    this.#last = create(LiveFrameSchema, {
      sequence: this.#sequence,
      pageId: page.id,
      contentType: "image/jpeg",
      width: Math.round(deviceWidth),
      height: Math.round(deviceHeight),
      capturedAt: timestampFromMs(timestamp === undefined ? Date.now() : Math.round(timestamp * 1_000)),
      data: bytes,
    });
    this.#owed = sessionId;
    this.#nextAt = performance.now() + frameGap;
    this.#listener.onFrame(this.#last);
    this.goOn();
  }
}

/** Whether a picture has the size of a page in CSS pixels, or what that is within the bounds. */
function hasSize(picture: Buffer, width: number, height: number): boolean {
  const size = readImageSize(picture);
  const scale = Math.min(1, how.maxWidth / width, how.maxHeight / height);
  return !size || (Math.abs(size.width - width * scale) <= 1 && Math.abs(size.height - height * scale) <= 1);
}

/** A page that does not take a command has gone, or its renderer has, which is told otherwise. */
function send(command: Promise<unknown>): void {
  command.catch(() => undefined);
}
