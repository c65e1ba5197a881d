import { BoundedQueue } from "../../src/platform/bounded-queue.ts";

/** How many bytes a client may be behind; one message that is longer is sent all the same. */
const mostBehind = 32 * 2 ** 20;

/** What a message takes beside its bytes while it waits: many small ones count, too. */
const messageBytes = 256;

/** What goes over the fleet link at once. */
const chunkBytes = 256 * 1024;

/** A part of a message. */
export interface Chunk {
  readonly data: Buffer;
  /** The message ends here. */
  readonly last: boolean;
}

/** A message in pieces, so that what is large in it is not copied. */
export type Message = readonly Buffer[];

/** The messages that wait for a client. Who writes them never waits: a client that reads too slowly is given up. */
export class Outbox {
  readonly #queue = new BoundedQueue<Message>({ items: Number.POSITIVE_INFINITY });
  #bytes = 0;
  #isDiscarded = false;

  /** Adds a message; false when the client is too far behind. */
  push(message: Message): boolean {
    if (this.#bytes > mostBehind) return false;
    this.#bytes += weigh(message);
    void this.#queue.push(message);
    return true;
  }

  /** Nothing more comes; what is here is still read. */
  end(): void {
    this.#queue.end();
  }

  /** Nothing more comes, and nothing more is read. */
  discard(): void {
    this.#isDiscarded = true;
    this.end();
  }

  /** All messages, in parts. */
  async *chunks(): AsyncGenerator<Chunk> {
    for await (const message of this.#queue) {
      for (const chunk of chunksOf(message)) {
        if (this.#isDiscarded) return;
        yield chunk;
      }
      this.#bytes -= weigh(message);
    }
  }
}

function weigh(message: Message): number {
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
