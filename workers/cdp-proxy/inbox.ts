import type { ProxyCdpRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { pipeBounds, pipeTotals } from "../cdp/pipe-bounds.ts";

/** Maximum length of a client message, in bytes. */
export const maxClientMessage = 100 * 2 ** 20;

/** Milliseconds that a client may wait for memory for a large message, and then take to send the message. */
const timeoutMs = 30_000;

/** Milliseconds between checks for free memory. */
const pollMs = 20;

/**
 * Assembles the messages of a client. A large message reserves the maximum length from the worker's total, because two
 * messages that grow step by step could deadlock. While no memory is free, the client's messages are not read.
 */
export class Inbox {
  readonly #onSlow: () => void;
  #parts: Uint8Array[] = [];
  #length = 0;
  /** Calls `onSlow` if the message does not end in time. Set while memory is reserved. */
  #timer: NodeJS.Timeout | undefined;

  /** `onSlow` is called if a large message gets no memory or does not end within 30 s. */
  constructor(onSlow: () => void) {
    this.#onSlow = onSlow;
  }

  /**
   * Adds a part of a message. Resolves with the message after its last part, otherwise with undefined. Rejects if the
   * message exceeds 100 MiB or gets no memory. The caller must call `clear` after a message.
   */
  async take({ data, last }: Pick<ProxyCdpRequest, "data" | "last">): Promise<Buffer | undefined> {
    this.#length += data.length;
    if (this.#length > maxClientMessage) throw new Error("message exceeds 100 MiB");
    if (this.#length > pipeBounds.largeBytes && !this.#timer) await this.#reserveMemory();
    this.#parts.push(data);
    return last ? Buffer.concat(this.#parts) : undefined;
  }

  /** Discards the message and frees its memory. */
  clear(): void {
    this.#parts = [];
    this.#length = 0;
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    pipeTotals.largeBytes -= maxClientMessage;
  }

  async #reserveMemory(): Promise<void> {
    const hasRoom = () => pipeTotals.largeBytes + maxClientMessage <= pipeBounds.allLargeBytes;
    if (!(await waitUntil(hasRoom, { timeout: timeoutMs, every: pollMs }))) {
      this.#onSlow();
      throw new Error("no memory for a large message within 30 s");
    }
    pipeTotals.largeBytes += maxClientMessage;
    this.#timer = setTimeout(this.#onSlow, timeoutMs);
  }
}
