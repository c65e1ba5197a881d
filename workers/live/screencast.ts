import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type LiveFrame, LiveFrameSchema } from "../../src/gen/pilothouse/v1/live_pb.ts";
import type { CdpEvents, CdpSession } from "../cdp/cdp-session.ts";
import { readImageSize } from "../driver/capture/image-size.ts";
import type { PageRegistry } from "../pages/page-registry.ts";
import type { Tab } from "../pages/tab.ts";

/** Minimum milliseconds between frames: 15 per second. */
const frameGap = 66;

/** At this quality text is sharp. A frame of 1280x720 has about 60 kB, and the largest about 1.5 MB. */
const how = { format: "jpeg", quality: 55, maxWidth: 1_600, maxHeight: 1_600 } as const;
/** One frame is in flight at a time. The browser keeps the newest, so the last state of a page always arrives. */
const pace = { maxFramesInFlight: 1, sendLastFrame: true };

/** Milliseconds before retrying on a page that refused to start the screencast. */
const beginGap = 50;

/** Milliseconds without further size changes before the screencast restarts. */
const resizeGap = 100;

/**
 * Milliseconds between a new document and a restart of the screencast. The browser drops the frame in which the size of
 * its surface changes, so 1 of 100 new tabs would keep showing the previous frame.
 */
const documentGap = 500;

/** Milliseconds to wait for the first frame before a restart, doubled at each restart. */
const firstFrameGap = 500;

/** Number of starts without a first frame after which the screencast is no longer restarted. */
const maxSilentStarts = 6;

/** Number of starts after which a frame of a wrong size is accepted. */
const maxStartsForSize = 4;

type ShownFrame = CdpEvents["Page.screencastFrame"];

export interface FrameListener {
  onFrame(frame: LiveFrame): void;
  /** Returns whether any viewer needs the next frame. Otherwise the browser renders no frame. */
  wantsFrame(): boolean;
}

/** Screencast of the active page, running only on demand. */
export class Screencast {
  readonly #pages: PageRegistry;
  readonly #listener: FrameListener;
  /** Sessions that we subscribed to. */
  readonly #subscribed = new WeakSet<CdpSession>();
  #isOn = false;
  #tab: Tab | undefined;
  #sequence = 0n;
  /** Frame to acknowledge. The browser sends no other frame before the acknowledgement. */
  #unacknowledged: number | undefined;
  #nextAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #restartTimer: NodeJS.Timeout | undefined;
  /** Number of documents that the tab had committed at the last `follow`. */
  #document = 0;
  /** Number of starts since the last frame of the right size, or since the tab or its size changed. */
  #starts = 0;
  /** Whether a frame has been accepted since the last start. */
  #hasFrame = false;
  #last: LiveFrame | undefined;

  constructor(pages: PageRegistry, listener: FrameListener) {
    this.#pages = pages;
    this.#listener = listener;
  }

  /** The last frame of the shown tab, if any. A static page sends no further frame. */
  get last(): LiveFrame | undefined {
    return this.#last;
  }

  setEnabled(isOn: boolean): void {
    this.#isOn = isOn;
    this.follow();
  }

  /**
   * Switches to the active page if the page or its tab has changed. If the tab shows a new document, schedules a
   * restart.
   */
  follow(): void {
    const page = this.#isOn ? this.#pages.shown : undefined;
    const tab = page?.isCrashed ? undefined : page?.tab;
    if (tab === this.#tab) {
      if (tab && tab.committed !== this.#document) this.#restartIn(documentGap);
      this.#document = tab?.committed ?? 0;
      return;
    }
    this.#stop();
    this.#last = undefined;
    this.#tab = tab;
    this.#document = tab?.committed ?? 0;
    this.#starts = 0;
    if (tab) this.#start(tab);
  }

  /** Acknowledges the last frame when the next frame is due and needed. */
  acknowledge(): void {
    if (this.#unacknowledged === undefined || !this.#tab || !this.#listener.wantsFrame()) return;
    clearTimeout(this.#timer);
    const wait = this.#nextAt - performance.now();
    if (wait > 0) {
      this.#timer = setTimeout(() => this.acknowledge(), wait);
      return;
    }
    send(this.#tab.session.send("Page.screencastFrameAck", { sessionId: this.#unacknowledged }));
    this.#unacknowledged = undefined;
  }

  #stop(): void {
    if (this.#tab) send(this.#tab.session.send("Page.stopScreencast"));
    clearTimeout(this.#timer);
    clearTimeout(this.#restartTimer);
    this.#tab = undefined;
    this.#unacknowledged = undefined;
  }

  /** Starts the screencast, and starts it again if no first frame arrives. */
  #start(tab: Tab): void {
    this.#begin(tab);
    this.#hasFrame = false;
    if (this.#starts < maxSilentStarts) this.#restartIn(firstFrameGap * 2 ** this.#starts, () => !this.#hasFrame);
    this.#starts += 1;
  }

  #begin(tab: Tab): void {
    const { session } = tab;
    if (!this.#subscribed.has(session)) {
      this.#subscribed.add(session);
      session.on("Page.screencastFrame", (frame) => this.#take(session, frame));
      session.on("Page.frameResized", () => {
        if (session !== this.#tab?.session) return;
        this.#starts = 0;
        this.#restartIn(resizeGap);
      });
    }
    // The page is brought to the front: in a browser with windows, background tabs render nothing.
    send(session.send("Page.bringToFront"));
    session.send("Page.startScreencast", { ...how, ...pace }).catch(() => {
      // A page refuses while its document is being replaced ("Not attached to an active page").
      if (tab === this.#tab) this.#timer = setTimeout(() => this.#begin(tab), beginGap);
    });
  }

  /**
   * Restarts the screencast after `ms` milliseconds if `isNeeded` returns true at that time. 1 of 20 frames after a
   * change of size never arrives, and a static page would send no other frame.
   */
  #restartIn(ms: number, isNeeded = () => true): void {
    clearTimeout(this.#restartTimer);
    this.#restartTimer = setTimeout(() => {
      if (!isNeeded()) return;
      const tab = this.#tab;
      this.#stop();
      this.#tab = tab;
      if (tab) this.#start(tab);
    }, ms);
  }

  #take(session: CdpSession, { data, metadata, sessionId }: ShownFrame): void {
    // The last frames of a page may arrive after another page became active.
    const page = this.#pages.shown;
    if (session !== this.#tab?.session || page?.tab !== this.#tab) return;
    const { deviceWidth, deviceHeight, timestamp } = metadata;
    const bytes = Buffer.from(data, "base64");
    if (hasSize(bytes, deviceWidth, deviceHeight)) this.#starts = 0;
    else if (this.#starts < maxStartsForSize) {
      // Frames of the wrong size are dropped: the first frames of a new page may show its initial window size, which
      // would misplace clicks.
      this.#restartIn(resizeGap);
      return;
    }
    this.#hasFrame = true;
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
    this.#unacknowledged = sessionId;
    this.#nextAt = performance.now() + frameGap;
    this.#listener.onFrame(this.#last);
    this.acknowledge();
  }
}

/**
 * Returns whether an image has the size of a page in CSS pixels, scaled down to the maximum frame size. True if the
 * image's size cannot be read.
 */
function hasSize(picture: Buffer, width: number, height: number): boolean {
  const size = readImageSize(picture);
  const scale = Math.min(1, how.maxWidth / width, how.maxHeight / height);
  return !size || (Math.abs(size.width - width * scale) <= 1 && Math.abs(size.height - height * scale) <= 1);
}

/** Ignores errors: the page or its renderer is gone, which is reported separately. */
function send(command: Promise<unknown>): void {
  command.catch(() => undefined);
}
