import type { Socket } from "node:net";

/** Bytes on the outgoing side of the relay: exchanged with the proxy, if any, otherwise with sites. */
export interface EgressBytes {
  sent: number;
  received: number;
}

/** Outgoing connections of a session, with their byte counts. */
export class SocketTally {
  readonly #open = new Set<Socket>();
  readonly #closed: EgressBytes = { sent: 0, received: 0 };
  #isClosed = false;

  /** Bytes exchanged since the tally was created. */
  get bytes(): EgressBytes {
    const sum = { ...this.#closed };
    for (const socket of this.#open) {
      sum.sent += socket.bytesWritten;
      sum.received += socket.bytesRead;
    }
    return sum;
  }

  /** Counts a connection. If the session has ended, destroys the connection instead. */
  add(socket: Socket): void {
    if (this.#isClosed) {
      socket.destroy();
      return;
    }
    this.#open.add(socket);
    socket.once("close", () => {
      this.#open.delete(socket);
      this.#closed.sent += socket.bytesWritten;
      this.#closed.received += socket.bytesRead;
    });
  }

  /** Destroys every connection. */
  close(): void {
    this.#isClosed = true;
    for (const socket of this.#open) socket.destroy();
  }
}
