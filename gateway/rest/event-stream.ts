import type { JsonObject, Message } from "@bufbuild/protobuf";
import { unlessLate } from "../../src/platform/deadline.ts";
import type { MessageWriter } from "../../src/platform/rest-json/writer.ts";

// Proxies close connections that are silent for 30 to 60 s.
const keepAliveMs = 15_000;
// Time until a stream without messages sends its headers. Errors before this keep their HTTP status.
const openingMs = 250;

/** First frame of a stream, and its keep-alive frame. Clients ignore comments. */
export const [openFrame, aliveFrame] = [": open\n\n", ": alive\n\n"];

/**
 * Writes a server stream as Server-Sent Events (HTML Living Standard, section 9.2). `id` and `event` are the fields
 * `id` and `type` of the message, `data` is its JSON. A failure midway becomes a final `error` event with the problem
 * document.
 */
export async function openEventStream(
  messages: AsyncIterator<Message>,
  write: MessageWriter,
  toProblem: (thrown: unknown) => JsonObject,
): Promise<AsyncIterable<string>> {
  const first = messages.next();
  await unlessLate(first, openingMs, () => undefined);
  return encode(first, messages, write, toProblem);
}

async function* encode(
  first: Promise<IteratorResult<Message>>,
  iterator: AsyncIterator<Message>,
  write: MessageWriter,
  toProblem: (thrown: unknown) => JsonObject,
): AsyncGenerator<string> {
  let next = first;
  try {
    yield openFrame;
    for (;;) {
      const result = await unlessLate(next, keepAliveMs, () => undefined);
      if (result === undefined) {
        yield aliveFrame;
        continue;
      }
      if (result.done) return;
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
