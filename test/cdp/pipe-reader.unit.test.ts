import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { Allowance } from "../../src/platform/allowance.ts";
import { pipeBounds, pipeTotals } from "../../workers/cdp/pipe-bounds.ts";
import { PipeReader } from "../../workers/cdp/pipe-reader.ts";

const mib = 2 ** 20;
let pipe: PassThrough;
let messages: string[];
let skipped: string[];

beforeEach(() => {
  pipe = new PassThrough();
  messages = [];
  skipped = [];
  const reader = new PipeReader(pipe, {
    onMessage: (message) => void messages.push(message.toString()),
    onSkipped: (head) => void skipped.push(head),
  });
  onTestFinished(() => reader.close());
});

afterEach(() => expect(pipeTotals.largeBytes).toBe(0));

async function write(...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    if (!pipe.write(text)) await turn();
    await turn();
  }
}

/** A message of a given length, in chunks of a pipe. */
function chunksOf(head: string, bytes: number, tail: string): string[] {
  const whole = head + "x".repeat(bytes - head.length - tail.length) + tail;
  return whole.match(/[\s\S]{1,65536}/g) ?? [];
}

describe("a pipe", () => {
  test("returns whole messages however they are cut", async () => {
    await write('{"id":1}\0{"method', '":"a"}', '\0{"id":2}\0', "", '{"params":"é', '"}\0');
    expect(messages).toEqual(['{"id":1}', '{"method":"a"}', '{"id":2}', '{"params":"é"}']);
  });

  test("skips an oversized event and continues with the next message", async () => {
    const head = '{"method":"Runtime.consoleAPICalled","params":{"';
    await write(...chunksOf(head, pipeBounds.eventBytes + 1, '"},"sessionId":"S"}'), '\0{"id":3}\0');
    await expect.poll(() => messages).toEqual(['{"id":3}']);
    expect(skipped).toHaveLength(1);
    expect(skipped[0]?.startsWith(head)).toBe(true);
  });

  test("reads an answer of that size, and an event just below the limit", async () => {
    const answer = chunksOf('{"id":4,"result":"', pipeBounds.eventBytes + mib, '"}');
    const event = chunksOf('{"method":"a","params":"', pipeBounds.eventBytes, '"}');
    await write(...answer, "\0", ...event, "\0");
    await expect.poll(() => messages.map(({ length }) => length)).toEqual([9 * mib, 8 * mib]);
    expect(skipped).toEqual([]);
  });

  test("skips messages above the total of all browsers of a worker", async () => {
    pipeTotals.largeBytes = pipeBounds.allLargeBytes - mib;
    await write(...chunksOf('{"id":5,"result":"', 2 * mib, '"}'), "\0");
    pipeTotals.largeBytes -= pipeBounds.allLargeBytes - mib;
    await expect.poll(() => skipped.map((head) => head.slice(0, 7))).toEqual(['{"id":5']);
  });

  test("pauses a browser that writes too many messages", async () => {
    const waits = pipeTotals.waits;
    await write("{}\0".repeat(pipeBounds.messagesPerSecond + 300));
    expect(messages).toHaveLength(pipeBounds.messagesPerSecond + 300);
    expect([pipe.isPaused(), pipeTotals.waits]).toEqual([true, waits + 1]);
    await expect.poll(() => pipe.isPaused()).toBe(false);
  });
});

test("allows a burst of one second's amount, and returns the delay for more", () => {
  const allowance = new Allowance(1_000);
  expect(allowance.use(1_000, 5_000)).toBe(0);
  expect(allowance.use(500, 5_000)).toBe(500);
  expect(allowance.use(500, 5_500)).toBe(500);
  expect(allowance.use(100, 60_000)).toBe(0);
});
