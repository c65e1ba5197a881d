import type { JsonObject, Message } from "@bufbuild/protobuf";
import { unlessLate } from "../../src/platform/deadline.ts";
import type { MessageWriter } from "../../src/platform/rest-json/writer.ts";

// Proxies cut connections that are silent for 30 to 60 s.
const keepAliveMs = 15_000;
// A stream with nothing to say yet still opens: early errors, which come within milliseconds, keep their status.
const openingMs = 250;

/** What a stream begins with, and what it says while there is nothing else to say: comments, which nobody hears. */
export const [openFrame, aliveFrame] = [": open\n\n", ": alive\n\n"];

/**
 * Writes a server stream as Server-Sent Events (HTML Living Standard, section 9.2): `id` and `event` from the fields `id`
 * and `type` of the message, `data` its JSON. A failure midway is a last event `error` with the problem document.
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

/** An event, as the stream has it. */
export function frameOf(json: JsonObject): string {
  const { id, type } = json;
  return (
    (typeof id === "string" && id !== "" ? `id: ${id}\n` : "") +
    (typeof type === "string" ? `event: ${type}\n` : "") +
    `data: ${JSON.stringify(json)}\n\n`
  );
}
