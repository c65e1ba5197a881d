import type { Readable } from "node:stream";
import { Allowance } from "../../src/platform/allowance.ts";
import { pipeBounds, pipeTotals } from "./pipe-bounds.ts";

/** Bytes of a skipped message that are kept to identify the answer or event. */
const headBytes = 256;

/** Messages of one chunk after which the reader yields to the event loop. Handling 50 takes about 5 ms. */
const manyMessages = 50;

export interface PipeListener {
  onMessage(message: Buffer): void;
  /** Called with the beginning of a message that was too long, or for which no memory was left. */
  onSkipped(head: string): void;
}

/**
 * Splits a browser's output into messages, which end with a NUL byte. Pages control the size and number of messages, so
 * oversized messages are skipped, and a browser above the rate limits is paused.
 */
export class PipeReader {
  readonly #pipe: Readable;
  readonly #listener: PipeListener;
  readonly #bytes = new Allowance(pipeBounds.bytesPerSecond);
  readonly #messages = new Allowance(pipeBounds.messagesPerSecond);
  /** Parts of the incomplete message. */
  #parts: Buffer[] = [];
  #length = 0;
  /** Bytes of the current message that are counted as large. */
  #reserved = 0;
  /** Longest allowed size of the current message. */
  #limit = 0;
  /** Beginning of the message being skipped. */
  #skipped: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(pipe: Readable, listener: PipeListener) {
    this.#pipe = pipe;
    this.#listener = listener;
    pipe.on("data", (chunk: Buffer) => this.#read(chunk));
  }

  /** Stops reading and releases all buffers. */
  close(): void {
    clearTimeout(this.#timer);
    this.#pipe.destroy();
    this.#forget();
  }

  #read(chunk: Buffer): void {
    let from = 0;
    let messages = 0;
    for (let end = chunk.indexOf(0); end >= 0; end = chunk.indexOf(0, from)) {
      this.#hold(chunk.subarray(from, end));
      this.#finish();
      messages += 1;
      from = end + 1;
    }
    if (from < chunk.length) this.#hold(chunk.subarray(from));
    this.#pace(chunk.length, messages);
  }

  #hold(part: Buffer): void {
    if (this.#skipped !== undefined) return;
    this.#parts.push(part);
    this.#length += part.length;
    if (this.#length <= pipeBounds.largeBytes || this.#admit()) return;
    this.#skipped = headOf(this.#parts);
    this.#forget();
  }

  /** Returns whether a large message may continue. Reserves memory for the part read so far. */
  #admit(): boolean {
    this.#limit ||= limitOf(headOf(this.#parts));
    const more = this.#length - this.#reserved;
    if (this.#length > this.#limit || pipeTotals.largeBytes + more > pipeBounds.allLargeBytes) return false;
    pipeTotals.largeBytes += more;
    this.#reserved += more;
    return true;
  }

  #finish(): void {
    const skipped = this.#skipped;
    if (skipped !== undefined) {
      this.#skipped = undefined;
      pipeTotals.skipped += 1;
      this.#listener.onSkipped(skipped);
      return;
    }
    const [only = Buffer.alloc(0), ...others] = this.#parts;
    const message = others.length === 0 ? only : Buffer.concat(this.#parts);
    this.#forget();
    this.#listener.onMessage(message);
  }

  #forget(): void {
    pipeTotals.largeBytes -= this.#reserved;
    this.#reserved = 0;
    this.#limit = 0;
    this.#parts = [];
    this.#length = 0;
  }

  /** Pauses a browser above the rate limits, and yields to other work after many messages. */
  #pace(bytes: number, messages: number): void {
    const now = performance.now();
    const waitMs = Math.max(this.#bytes.use(bytes, now), this.#messages.use(messages, now));
    if (waitMs < 1 && messages < manyMessages) return;
    this.#pipe.pause();
    if (waitMs < 1) {
      setImmediate(() => this.#pipe.resume());
      return;
    }
    pipeTotals.waits += 1;
    this.#timer = setTimeout(() => this.#pipe.resume(), waitMs);
  }
}

/** Returns the size limit of a message. Chromium writes an answer's id, or an event's name, first. */
function limitOf(head: string): number {
  return head.startsWith('{"id":') ? pipeBounds.answerBytes : pipeBounds.eventBytes;
}

function headOf(parts: readonly Buffer[]): string {
  let head = "";
  for (const part of parts) {
    head += part.toString("latin1", 0, headBytes - head.length);
    if (head.length >= headBytes) break;
  }
  return head;
}
