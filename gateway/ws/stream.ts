import type { RawData, WebSocket } from "ws";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import type { GatewayCall } from "../gateway-call.ts";
import type { UnreadMessage } from "../policies/conversation.ts";
import type { TransportParts } from "../transport-parts.ts";
import { compileFrames, mayBeEnd, type WebSocketFrame } from "./frames.ts";

// Limits of a client's queue. The socket is not read while the queue is full.
const queueLimits = { items: 64, weight: 1024 * 1024, weigh: ({ data }: WebSocketFrame) => data.length };
// Unread bytes of a client beyond which writes wait.
const bufferedBytes = 1024 * 1024;
export const closeClientFault = 1008;
export const closeTryAgainLater = 1013;

/**
 * Runs a bidirectional method over an accepted WebSocket, one message per frame. Returns a function that reads the
 * number of frame bytes waiting for the method.
 */
export function serveStream(
  client: WebSocket,
  call: GatewayCall,
  variables: Readonly<Record<string, string>>,
  { dispatcher, problems }: TransportParts,
  closeCode: () => number,
): () => number {
  const codec = compileFrames(call.served, variables);
  const frames = new BoundedQueue<WebSocketFrame>(queueLimits);
  let isUnreadable = false;

  client.on("message", (data: RawData, isBinary: boolean) => {
    const room = frames.push({ data: frameBytes(data), isBinary });
    if (room) {
      client.pause();
      void room.then(() => client.resume());
    }
  });
  client.on("close", () => {
    frames.end();
    call.cancel();
  });
  // The WebSocket closes itself after an error; without a listener the error would end the process.
  client.on("error", () => undefined);

  async function* requests(): AsyncGenerator<UnreadMessage> {
    for await (const frame of frames) {
      if (!mayBeEnd(frame)) {
        yield { bytes: frame.data.length, read: () => read(frame) };
        continue;
      }
      const message = read(frame);
      if (!message) return;
      yield { bytes: frame.data.length, read: () => message };
    }
  }

  function read(frame: WebSocketFrame): ReturnType<UnreadMessage["read"]> {
    const received = codec.read(frame);
    if (received.kind === "message") return received.message;
    if (received.kind === "fault") return { broken: received.failure, id: received.id };
    if (received.kind === "unreadable") isUnreadable = true;
    return undefined;
  }

  async function run(): Promise<void> {
    try {
      for await (const answer of dispatcher.bidiStream(call, requests())) {
        await send(client, codec.write(answer));
      }
      if (isUnreadable) {
        client.close(closeClientFault, "a frame contains no message of this method");
      } else {
        client.close(closeCode());
      }
    } catch (thrown) {
      await closeFailed(client, call, problems, thrown);
    }
  }
  void run();
  return () => frames.weight;
}

/** Sends the problem document of a failure, and closes the WebSocket. */
export async function closeFailed(
  client: WebSocket,
  { requestId }: GatewayCall,
  problems: TransportParts["problems"],
  thrown: unknown,
): Promise<void> {
  const failure = problems.failure(thrown, requestId);
  await send(client, JSON.stringify({ error: problems.document(failure, requestId) }));
  client.close(errorTable[failure.slug].status < 500 ? closeClientFault : closeTryAgainLater, failure.slug);
}

/** Kind of a frame: text or binary, and whether it ends the message. */
interface FrameKind {
  readonly binary: boolean;
  readonly fin: boolean;
}

/** Sends a frame. Waits if the client reads too slowly. */
export function send(client: WebSocket, data: string | Uint8Array, kind: Partial<FrameKind> = {}): Promise<void> {
  return new Promise((resolve) => {
    const behind = client.bufferedAmount > bufferedBytes;
    // Called when the frame was written, or with the error of a closed socket, which ends the call.
    client.send(data, kind, () => behind && resolve());
    if (!behind) resolve();
  });
}

/** Returns the bytes of a frame. */
export function frameBytes(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return Buffer.isBuffer(data) ? data : Buffer.from(data);
}
