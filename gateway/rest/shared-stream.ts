import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Message } from "@bufbuild/protobuf";
import type { Broadcast } from "../../src/platform/broadcast.ts";
import type { MessageWriter } from "../../src/platform/rest-json/writer.ts";
import { aliveFrame, frameOf, openFrame } from "./event-stream.ts";

/** Groups of followers. Each second one group receives a keep-alive frame: one frame per follower every 15 s. */
const parts = 15;

/** Followers to write to before yielding to the event loop. Writing to them takes 3 ms of CPU. */
const atOnce = 100;

/** Largest number of unread bytes per follower, besides kernel buffers. A status has some thousand bytes. */
const maxWaiting = 262_144;

/**
 * Server-Sent Events with the same bytes for all followers, encoded once. A follower costs little besides its
 * connection: a gateway serves ten thousand followers.
 */
export class SharedStream {
  readonly #write: MessageWriter;
  readonly #parts: readonly Set<ServerResponse>[] = Array.from({ length: parts }, () => new Set());
  #latest = "";
  /** First bytes of a new follower, shared by all followers that have not read them. */
  #first = Buffer.from(openFrame);
  #turn = 0;
  #count = 0;
  #unlisten: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(write: MessageWriter) {
    this.#write = write;
  }

  /** Sends the latest frame and all later frames to a follower until its response closes. */
  follow(messages: Broadcast<Message>, response: ServerResponse): void {
    const part = this.#parts[this.#count % parts];
    if (!part) return;
    this.#count += 1;
    response.once("close", () => {
      part.delete(response);
      if (this.#parts.every(({ size }) => size === 0)) this.#rest();
    });
    this.#unlisten ??= messages.listen((message) => {
      this.#latest = frameOf(this.#write(message));
      this.#first = Buffer.from(openFrame + this.#latest);
      void this.#deliver(this.#latest, this.#parts);
    });
    this.#timer ??= setInterval(() => {
      this.#turn = (this.#turn + 1) % parts;
      void this.#deliver(aliveFrame, this.#parts.slice(this.#turn, this.#turn + 1));
    }, 1_000);
    response.write(this.#first);
    part.add(response);
  }

  /** Sends a frame to followers in turns. Stops if a newer frame exists. */
  async #deliver(frame: string, those: readonly Set<ServerResponse>[]): Promise<void> {
    const bytes = Buffer.from(frame);
    let sentCount = 0;
    for (const response of those.flatMap((part) => [...part])) {
      if (frame !== aliveFrame && frame !== this.#latest) return;
      sentCount += 1;
      if (sentCount % atOnce === 0) await nextTurn();
      if (response.writableLength > maxWaiting) response.destroy();
      else if (!response.writableEnded && !response.destroyed) response.write(bytes);
    }
  }

  /** Stops listening for messages, since no followers are left. */
  #rest(): void {
    this.#unlisten?.();
    clearInterval(this.#timer);
    this.#unlisten = undefined;
    this.#timer = undefined;
  }
}
