import type { Socket } from "node:net";

/** Bytes that crossed the relay: on the side of the sites, or of the proxy where there is one, as its owner bills them. */
export interface EgressBytes {
  sent: number;
  received: number;
}

/** The connections that lead out of a session, and the bytes that crossed them. */
export class SocketTally {
  readonly #open = new Set<Socket>();
  readonly #closed: EgressBytes = { sent: 0, received: 0 };
  #isClosed = false;

  /** Bytes exchanged since the tally was made. */
  get bytes(): EgressBytes {
    const sum = { ...this.#closed };
    for (const socket of this.#open) {
      sum.sent += socket.bytesWritten;
      sum.received += socket.bytesRead;
    }
    return sum;
  }

  /** Counts a connection from now on; ends it when the session has ended meanwhile. */
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

  /** Ends every connection. */
  close(): void {
    this.#isClosed = true;
    for (const socket of this.#open) socket.destroy();
  }
}
