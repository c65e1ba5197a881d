import { BoundedQueue } from "../../src/platform/bounded-queue.ts";

/** Queued bytes above which a client's queue accepts no further message. A single longer message is still sent. */
const maxBacklog = 32 * 2 ** 20;

/** Overhead in bytes per queued message, so that many small messages count. */
const messageBytes = 256;

/** Maximum bytes per chunk on the fleet link. */
const chunkBytes = 256 * 1024;

export interface Chunk {
  readonly data: Buffer;
  readonly last: boolean;
}

/** A message in one or more buffers. Several buffers avoid copying a large message. */
export type Message = readonly Buffer[];

/** Queue of messages for a client. Writers never block: `push` returns false if the client reads too slowly. */
export class SendQueue {
  readonly #queue = new BoundedQueue<Message>({ items: Number.POSITIVE_INFINITY });
  #bytes = 0;
  #isDiscarded = false;

  /** Adds a message. Returns false if more than 32 MiB are already queued. */
  push(message: Message): boolean {
    if (this.#bytes > maxBacklog) return false;
    this.#bytes += sizeOf(message);
    void this.#queue.push(message);
    return true;
  }

  /** Ends the queue. Queued messages can still be read. */
  end(): void {
    this.#queue.end();
  }

  /** Ends the queue and drops queued messages. */
  discard(): void {
    this.#isDiscarded = true;
    this.end();
  }

  async *chunks(): AsyncGenerator<Chunk> {
    for await (const message of this.#queue) {
      for (const chunk of chunksOf(message)) {
        if (this.#isDiscarded) return;
        yield chunk;
      }
      this.#bytes -= sizeOf(message);
    }
  }
}

function sizeOf(message: Message): number {
  return message.reduce((sum, { length }) => sum + length, messageBytes);
}

function* chunksOf(message: Message): Generator<Chunk> {
  for (const [index, piece] of message.entries()) {
    const isLastPiece = index === message.length - 1;
    for (let from = 0; from < piece.length; from += chunkBytes) {
      const data = piece.subarray(from, from + chunkBytes);
      yield { data, last: isLastPiece && from + chunkBytes >= piece.length };
    }
  }
}
