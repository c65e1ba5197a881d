import type { JsonObject, Message } from "@bufbuild/protobuf";
import { unlessLate } from "../../src/platform/deadline.ts";
import type { MessageWriter } from "../../src/platform/rest-json/writer.ts";

// Milliseconds without a message until a keep-alive frame. Proxies close connections that are silent for 30 to 60 s.
const keepAliveMs = 15_000;
// Milliseconds until a stream without messages sends its headers. An earlier error is sent with its own HTTP status.
const openingMs = 250;

/** First frame of a stream, and its keep-alive frame. Both are comments, which clients ignore. */
export const [openFrame, aliveFrame] = [": open\n\n", ": alive\n\n"];

/** First frame of a stream that starts after an event. Its `id` lets clients resume before the first event. */
const startFrame = (eventId: string): string => `: open\nid: ${eventId}\n\n`;

/**
 * Returns the frames of a server stream as Server-Sent Events (HTML Living Standard, section 9.2). `id` and `event` are
 * the fields `id` and `type` of the message, `data` is its JSON. Rejects if the stream fails within 250 ms, before its
 * first message. A later failure becomes a final `error` event with the problem document. `start` resolves with the id
 * of the event after which the stream starts.
 */
export async function openEventStream(
  messages: AsyncIterator<Message>,
  write: MessageWriter,
  toProblem: (thrown: unknown) => JsonObject,
  start?: Promise<string>,
): Promise<AsyncIterable<string>> {
  const first = messages.next();
  const ready = first.then(() => undefined);
  const startId = await unlessLate(start ? Promise.race([start, ready]) : ready, openingMs, () => undefined);
  return encode(first, messages, write, toProblem, startId ?? start);
}

async function* encode(
  first: Promise<IteratorResult<Message>>,
  iterator: AsyncIterator<Message>,
  write: MessageWriter,
  toProblem: (thrown: unknown) => JsonObject,
  start: string | Promise<string> | undefined,
): AsyncGenerator<string> {
  let next = first;
  let pendingStart = typeof start === "string" ? undefined : start;
  try {
    yield typeof start === "string" ? startFrame(start) : openFrame;
    for (;;) {
      const result = await unlessLate(
        pendingStart ? Promise.race([pendingStart, next]) : next,
        keepAliveMs,
        () => undefined,
      );
      if (typeof result === "string") {
        yield startFrame(result);
        pendingStart = undefined;
        continue;
      }
      if (result === undefined) {
        yield aliveFrame;
        continue;
      }
      if (result.done) return;
      pendingStart = undefined;
      yield frameOf(write(result.value));
      next = iterator.next();
    }
  } catch (thrown) {
    yield `event: error\ndata: ${JSON.stringify(toProblem(thrown))}\n\n`;
  } finally {
    await iterator.return?.();
  }
}

/** Formats an event as a frame. */
export function frameOf(json: JsonObject): string {
  const { id, type } = json;
  return (
    (typeof id === "string" && id !== "" ? `id: ${id}\n` : "") +
    (typeof type === "string" ? `event: ${type}\n` : "") +
    `data: ${JSON.stringify(json)}\n\n`
  );
}
