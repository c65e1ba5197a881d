import type { Socket } from "node:net";
import { Writable } from "node:stream";
import type { WebSocket } from "ws";
import type { GatewayCall } from "../call.ts";
import type { ClientBuffers } from "../client-buffers.ts";
import { lingerMs } from "../slow-bodies.ts";
import { closeClientFault, closeComeBack } from "./stream.ts";

/** Bytes of an unfinished message that may wait for the rest without limit: most methods take no longer one. */
const patientBytes = 2 ** 20;

/** Milliseconds in which a longer message has to finish: enough for 100 MiB at 28 Mbit/s. */
const messageMs = 30_000;

/** A WebSocket, and what is known of its memory. */
interface MemoryOf {
  readonly client: WebSocket;
  readonly socket: Socket;
  readonly call: GatewayCall;
  readonly buffers: ClientBuffers;
  /** Returns how many bytes of finished messages wait to be read. */
  waiting(): number;
}

/**
 * Closes a WebSocket if a message above 1 MiB is not finished within 30 s: `ws` holds all parts of a message until the
 * last one has come. Counts these bytes, finished messages that wait, and what the client does not read.
 */
export function boundMemory({ client, socket, call, buffers, waiting }: MemoryOf): void {
  const unfinished = unfinishedOf(client);
  const held = (): number => unfinished() + waiting();
  const buffer = buffers.open(call, {
    measure: { message: held, answer: () => client.bufferedAmount },
    close: () => giveUp(client, socket, closeComeBack, "over_budget"),
  });
  let late: NodeJS.Timeout | undefined;
  const forget = (): void => {
    clearTimeout(late);
    late = undefined;
  };
  // `ws` has a listener before this one, and so has read what has come.
  socket.on("data", () => {
    buffer.set("message", held());
    if (unfinished() <= patientBytes) forget();
    else if (buffers.refuses(call)) giveUp(client, socket, closeComeBack, "over_budget");
    else late ??= setTimeout(() => giveUp(client, socket, closeClientFault, "message_unfinished"), messageMs);
  });
  client.on("message", () => {
    forget();
    buffer.set("message", held());
  });
  client.on("close", () => {
    forget();
    buffers.release(buffer);
  });
}

/** Closes a WebSocket, and discards what its client still sends: `ws` would read on until the client has closed its side. */
function giveUp(client: WebSocket, socket: Socket, code: number, reason: string): void {
  client.close(code, reason);
  socket.removeAllListeners("data").resume();
  setTimeout(() => client.terminate(), lingerMs).unref();
}

/**
 * Returns what reads how many bytes of an unfinished message `ws` holds: of whole frames, and of the frame that comes.
 * `ws` does not show them, so they are taken from inside; a test tells when they have moved.
 */
function unfinishedOf(client: WebSocket): () => number {
  const receiver: unknown = Reflect.get(client, "_receiver");
  if (!(receiver instanceof Writable && "_bufferedBytes" in receiver && "_messageLength" in receiver)) {
    throw new Error("ws keeps the bytes of unfinished messages elsewhere");
  }
  return () => Number(receiver._bufferedBytes) + Number(receiver._messageLength);
}
