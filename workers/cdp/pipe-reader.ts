import type { Readable } from "node:stream";
import { Allowance } from "../../src/platform/allowance.ts";
import { pipeBounds, pipeTotals } from "./pipe-bounds.ts";

/** How much is kept of a message that is skipped: which answer, or what event, it was. */
const headBytes = 256;

/** After so many messages in one piece others have their turn: handling them takes some 5 ms. */
const manyMessages = 50;

/** Hears what a browser writes. */
export interface PipeListener {
  onMessage(message: Buffer): void;
  /** Hears how a message began that was too long to be read. */
  onSkipped(head: string): void;
}

/**
 * Reads what a browser writes: messages that end with a NUL byte. A web page decides how long they are and how many, so
 * one that is too long is skipped, and a browser that writes too much has to wait: it is not read meanwhile.
 */
export class PipeReader {
  readonly #pipe: Readable;
  readonly #listener: PipeListener;
  readonly #bytes = new Allowance(pipeBounds.bytesPerSecond);
  readonly #messages = new Allowance(pipeBounds.messagesPerSecond);
  /** What has come of a message that has no end yet. */
  #parts: Buffer[] = [];
  #length = 0;
  /** How much of it is counted among the large ones, and how long it may become. */
  #reserved = 0;
  #limit = 0;
  /** How the message began that is being skipped. */
  #skipped: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(pipe: Readable, listener: PipeListener) {
    this.#pipe = pipe;
    this.#listener = listener;
    pipe.on("data", (chunk: Buffer) => this.#read(chunk));
  }

  /** Reads no more, and lets go of what it holds. */
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

  /** Whether what has come of a large message may be held. */
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

  /** Lets a browser wait that has written too much, and others have their turn before one that has much to say. */
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

/** Chromium writes the id of an answer, or the name of an event, before all else. */
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
