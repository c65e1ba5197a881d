import type { Socket } from "node:net";
import { Writable } from "node:stream";
import type { WebSocket } from "ws";
import type { ClientBuffers } from "../client-buffers.ts";
import type { GatewayCall } from "../gateway-call.ts";
import { lingerMs } from "../slow-bodies.ts";
import { closeClientFault, closeTryAgainLater } from "./stream.ts";

/** Bytes up to which an unfinished message has no time limit. Most methods refuse longer messages. */
const untimedBytes = 2 ** 20;

/** Milliseconds until a longer message must be complete: enough for 100 MiB at 28 Mbit/s. */
const messageMs = 30_000;

/** A WebSocket and the sources of its memory use. */
interface BoundedSocket {
  readonly client: WebSocket;
  readonly socket: Socket;
  readonly call: GatewayCall;
  readonly buffers: ClientBuffers;
  /** Returns the bytes of finished messages that wait to be read. */
  waiting(): number;
}

/**
 * Closes a WebSocket if a message above 1 MiB does not finish within 30 s, because `ws` holds all parts of an
 * unfinished message. Counts these bytes, waiting finished messages, and unread responses, and closes the WebSocket if
 * they exceed the budget of `buffers`.
 */
export function boundMemory({ client, socket, call, buffers, waiting }: BoundedSocket): void {
  const unfinished = unfinishedOf(client);
  const held = (): number => unfinished() + waiting();
  const buffer = buffers.open(call, {
    measure: { message: held, answer: () => client.bufferedAmount },
    close: () => closeNow(client, socket, closeTryAgainLater, "over_budget"),
  });
  let timer: NodeJS.Timeout | undefined;
  const clearTimer = (): void => {
    clearTimeout(timer);
    timer = undefined;
  };
  // The listener of `ws` runs first, so `ws` has already processed the data.
  socket.on("data", () => {
    buffer.set("message", held());
    if (unfinished() <= untimedBytes) clearTimer();
    else if (buffers.refuses(call)) closeNow(client, socket, closeTryAgainLater, "over_budget");
    else timer ??= setTimeout(() => closeNow(client, socket, closeClientFault, "message_unfinished"), messageMs);
  });
  client.on("message", () => {
    clearTimer();
    buffer.set("message", held());
  });
  client.on("close", () => {
    clearTimer();
    buffers.release(buffer);
  });
}

/** Closes a WebSocket and discards further input. `ws` would keep reading until the client closes its side. */
function closeNow(client: WebSocket, socket: Socket, code: number, reason: string): void {
  client.close(code, reason);
  socket.removeAllListeners("data").resume();
  setTimeout(() => client.terminate(), lingerMs).unref();
}

/**
 * Returns a function that reads the bytes of an unfinished message: its finished frames and the current frame. Reads
 * private fields of `ws`. Throws if the fields do not exist.
 */
function unfinishedOf(client: WebSocket): () => number {
  const receiver: unknown = Reflect.get(client, "_receiver");
  if (!(receiver instanceof Writable && "_bufferedBytes" in receiver && "_messageLength" in receiver)) {
    throw new Error("expected the private fields of unfinished messages in ws");
  }
  return () => Number(receiver._bufferedBytes) + Number(receiver._messageLength);
}
