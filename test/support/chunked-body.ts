import { setImmediate as breathe } from "node:timers/promises";

const partBytes = 65_536;

/**
 * Body of spaces with unknown length that yields between chunks. Otherwise fetch reads it without pause, even after the
 * connection is closed, and blocks the test's timers.
 */
export function chunkedBody(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  return new ReadableStream({
    async pull(controller) {
      await breathe();
      controller.enqueue(new Uint8Array(Math.min(left, partBytes)).fill(32));
      left -= partBytes;
      if (left <= 0) controller.close();
    },
  });
}
