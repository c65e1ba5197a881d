import { setImmediate as breathe } from "node:timers/promises";

const partBytes = 65_536;

/**
 * A body of unknown length, which is of spaces. It ends, and leaves others their turns: fetch reads one that is there at
 * once for as long as it lasts, whatever has become of its connection, and no deadline of a test is heard meanwhile.
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
