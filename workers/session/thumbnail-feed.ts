import { setTimeout } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type Thumbnail, ThumbnailSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { within } from "../../src/platform/deadline.ts";
import type { ThumbnailPicture } from "../driver/observe/thumbnail.ts";
import type { PageRegistry } from "../pages/page-registry.ts";
import { PaintWatch } from "../pages/paint-watch.ts";

/**
 * Milliseconds. `gap`: pause between pictures. `picture`: timeout of a picture; a page that needs longer is busy.
 * `settle`: time for the paints that the picture and the watch cause.
 */
const times = { gap: 2_000, picture: 200, settle: 500 };

export interface ThumbnailFeedParts {
  /** Identifier of the session. */
  readonly id: string;
  readonly pages: PageRegistry;
  /** Takes a picture. Resolves with undefined if no picture can be taken now. */
  take(): Promise<ThumbnailPicture | undefined>;
}

/** Small pictures of a session for all readers. Nothing runs without readers, or while the page does not paint. */
export class ThumbnailFeed {
  readonly #parts: ThumbnailFeedParts;
  readonly #readers = new Set<BoundedQueue<Thumbnail>>();
  #running: AbortController | undefined;
  #last: Thumbnail | undefined;
  #isClosed = false;

  constructor(parts: ThumbnailFeedParts) {
    this.#parts = parts;
  }

  /**
   * Yields the current picture, if any, and then newer pictures, until the session ends or the signal aborts. Slow
   * readers skip pictures.
   */
  async *read(signal: AbortSignal): AsyncGenerator<Thumbnail, void, undefined> {
    const pictures = new BoundedQueue<Thumbnail>({ items: 1 });
    const end = () => pictures.end();
    if (this.#isClosed || signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
    this.#readers.add(pictures);
    if (this.#last) pictures.pushDroppingOldest(this.#last);
    this.#start();
    try {
      yield* pictures;
    } finally {
      signal.removeEventListener("abort", end);
      this.#readers.delete(pictures);
      if (this.#readers.size === 0) this.#stop();
    }
  }

  /** Ends the streams of all readers. */
  close(): void {
    this.#isClosed = true;
    this.#stop();
    for (const reader of this.#readers) reader.end();
  }

  #start(): void {
    if (this.#running || this.#isClosed) return;
    this.#running = new AbortController();
    // Only the aborted pause rejects.
    this.#run(this.#running.signal).catch(() => undefined);
  }

  #stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    // A later reader must not receive an outdated picture.
    this.#last = undefined;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const paints = new PaintWatch(this.#parts.pages);
    const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    try {
      while (!signal.aborted) {
        const taking = this.#parts.take();
        const taken = this.#publish(await within(taking, times.picture, undefined), signal);
        // A late picture is dropped. The next picture waits until the late picture is done.
        await Promise.race([taking.catch(() => undefined), stopped]);
        // If the picture shows nothing new, paints that it caused are ignored: they would cause the next picture.
        if (taken) await paints.rearm(taken === "same" ? times.settle : 0);
        await setTimeout(times.gap, undefined, { signal });
        if (taken) await Promise.race([paints.painted, stopped]);
      }
    } finally {
      paints.close();
    }
  }

  /**
   * Sends a picture to all readers unless it is the same as the last picture. Returns undefined if there is no picture.
   */
  #publish(picture: ThumbnailPicture | undefined, signal: AbortSignal): "new" | "same" | undefined {
    if (!picture || signal.aborted) return undefined;
    const { data, width, height } = picture;
    if (this.#last && data.equals(this.#last.data)) return "same";
    const size = { contentType: "image/jpeg", width, height };
    this.#last = create(ThumbnailSchema, { sessionId: this.#parts.id, ...size, capturedAt: timestampNow(), data });
    for (const reader of this.#readers) reader.pushDroppingOldest(this.#last);
    return "new";
  }
}
