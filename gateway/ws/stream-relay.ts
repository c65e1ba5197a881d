import type { Socket } from "node:net";
import type { Message } from "@bufbuild/protobuf";
import type { RawData, WebSocket } from "ws";
import type { CdpResponse } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { Allowance } from "../../src/platform/allowance.ts";
import { BoundedQueue } from "../../src/platform/bounded-queue.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import type { GatewayCall } from "../gateway-call.ts";
import type { TransportParts } from "../transport-parts.ts";
import type { RelayInput, RelayPart } from "./relay-input.ts";
import type { RelayMetrics } from "./relay-metrics.ts";
import { closeClientFault, closeTryAgainLater, frameBytes, send } from "./stream.ts";

/** Largest chunk on the fleet link, and limits of the client's queue. */
const chunkBytes = 256 * 1024;
const queueLimits = { items: 64, weight: 8 * chunkBytes, weigh: ({ data }: RelayPart) => data.length };

/**
 * Messages and bytes per second of a client, which are also its bursts. Further messages wait. A worker parses the
 * messages, which takes about 20 ms per MiB.
 */
const messagesPerSecond = 5_000;
const bytesPerSecond = 8 * 2 ** 20;

const closeDone = 1000;
const closeNoText = 1003;

/** Close codes of a client that ends its connection normally: 1005 is a close frame without a code. */
const normalCloses: ReadonlySet<number> = new Set([closeDone, 1001, 1005]);

/** Close code of `ws` for a connection that ended without a close frame. */
const closedAbnormally = 1006;

/** Close codes and reasons by the reason that the worker reports. */
const closings: Readonly<Record<string, readonly [code: number, reason: string]>> = {
  browser_closed: [closeDone, "browser_closed"],
  session_ended: [closeDone, "session-destroyed"],
  too_slow: [closeTryAgainLater, "too_slow"],
};

/** Options of a relayed WebSocket. */
export interface StreamRelayOptions {
  readonly call: GatewayCall;
  readonly input: RelayInput;
  readonly transport: TransportParts;
  readonly metrics: RelayMetrics;
  /** Returns the close code of a connection that ended normally. */
  closeCode(): number;
}

/**
 * Opens a relaying method before its WebSocket is accepted, so that a refusal is the response to the handshake. Returns
 * a function that relays the text frames of the accepted WebSocket unchanged in both directions, and that returns a
 * reader of the number of waiting bytes.
 */
export async function openRelay(
  relay: StreamRelayOptions,
  socket: Socket,
): Promise<(client: WebSocket) => () => number> {
  const { call, transport, input } = relay;
  const parts = new BoundedQueue<RelayPart>(queueLimits);
  parts.push(input.first);
  const answers = transport.dispatcher.bidiStream(call, parts)[Symbol.asyncIterator]();
  // Until the WebSocket is accepted, only this listener ends the responses when the client disconnects.
  const cancel = (): void => {
    call.cancel();
    void answers.return?.();
  };
  socket.once("close", cancel);
  await answers.next();
  // The client may have disconnected before the listener was added.
  if (socket.destroyed) cancel();
  return (client) => {
    socket.off("close", cancel);
    forwardFrames(client, parts, relay);
    void sendResponses(client, answers, relay);
    return () => parts.weight;
  };
}

function forwardFrames(
  client: WebSocket,
  parts: BoundedQueue<RelayPart>,
  { call, metrics, input }: StreamRelayOptions,
): void {
  const messages = new Allowance(messagesPerSecond);
  const bytes = new Allowance(bytesPerSecond);
  let holds = 0;

  async function hold(room: Promise<void> | undefined, waitMs: number): Promise<void> {
    const since = performance.now();
    holds += 1;
    client.pause();
    await Promise.all([room, sleep(waitMs, call.signal)]);
    holds -= 1;
    if (holds > 0) return;
    client.resume();
    metrics.held.inc((performance.now() - since) / 1_000);
  }

  client.on("message", (raw: RawData, isBinary: boolean) => {
    if (isBinary) {
      client.close(closeNoText, "messages are text frames");
      return;
    }
    const message = frameBytes(raw);
    metrics.messages.inc({ direction: "in" });
    let room: Promise<void> | undefined;
    for (let from = 0; from < message.length; from += chunkBytes) {
      const data = message.subarray(from, from + chunkBytes);
      room = parts.push(input.part(data, from + chunkBytes >= message.length)) ?? room;
    }
    const now = performance.now();
    const waitMs = Math.max(messages.use(1, now), bytes.use(message.length, now));
    if (room || waitMs >= 1) void hold(room, waitMs);
  });
  client.on("close", (code: number) => {
    if (code === closedAbnormally) {
      call.cancel();
      return;
    }
    if (input.done && normalCloses.has(code)) void parts.push(input.done);
    parts.end();
  });
  // The WebSocket closes itself after an error; without a listener the error would end the process.
  client.on("error", () => undefined);
}

async function sendResponses(
  client: WebSocket,
  answers: AsyncIterator<Message>,
  relay: StreamRelayOptions,
): Promise<void> {
  const { call, transport, metrics, closeCode } = relay;
  try {
    for (let next = await answers.next(); !next.done; next = await answers.next()) {
      // Casts the response of a relaying method to the type that its descriptor declares.
      const { data, last, closed } = next.value as CdpResponse;
      if (data.length > 0) await send(client, data, { binary: false, fin: last });
      if (last) metrics.messages.inc({ direction: "out" });
      const closing = closings[closed];
      if (closing) client.close(...closing);
    }
    client.close(closeCode());
  } catch (thrown) {
    const { slug } = transport.problems.failure(thrown, call.requestId);
    const isOurs = errorTable[slug].status >= 500;
    client.close(slug === "session-destroyed" ? closeDone : isOurs ? closeTryAgainLater : closeClientFault, slug);
  }
}
