import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { pipeBounds, pipeTotals } from "../../workers/cdp/pipe-bounds.ts";
import { Inbox, maxClientMessage } from "../../workers/cdp-proxy/inbox.ts";

const mib = 2 ** 20;
const part = (bytes: number, last = false) => ({ data: Buffer.alloc(bytes), last });

let slow: number;
beforeEach(() => {
  slow = 0;
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  expect(pipeTotals.largeBytes).toBe(0);
});

function open(): Inbox {
  return new Inbox(() => {
    slow += 1;
  });
}

test("returns a small message whole and does not count it as large", async () => {
  const inbox = open();
  expect(await inbox.take(part(mib / 2))).toBeUndefined();
  expect((await inbox.take(part(mib / 2, true)))?.length).toBe(mib);
  expect(pipeTotals.largeBytes).toBe(0);
});

test("counts a large message in the total of all browsers until it is cleared", async () => {
  const inbox = open();
  expect((await inbox.take(part(2 * mib, true)))?.length).toBe(2 * mib);
  expect(pipeTotals.largeBytes).toBe(maxClientMessage);
  inbox.clear();
  expect(pipeTotals.largeBytes).toBe(0);
});

test("delays a large message until others leave room", async () => {
  const [first, second, third] = [open(), open(), open()];
  await Promise.all([first.take(part(2 * mib)), second.take(part(2 * mib))]);
  const waiting = third.take(part(2 * mib, true));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(pipeTotals.largeBytes).toBe(2 * maxClientMessage);
  first.clear();
  await vi.advanceTimersByTimeAsync(100);
  expect((await waiting)?.length).toBe(2 * mib);
  for (const inbox of [second, third]) inbox.clear();
  expect(slow).toBe(0);
});

test("rejects a message that finds no room in time", async () => {
  pipeTotals.largeBytes = pipeBounds.allLargeBytes;
  const refused = expect(open().take(part(2 * mib))).rejects.toThrow("no memory");
  await vi.advanceTimersByTimeAsync(29_000);
  expect(slow).toBe(0);
  await vi.advanceTimersByTimeAsync(2_000);
  await refused;
  expect(slow).toBe(1);
  pipeTotals.largeBytes = 0;
});

test("rejects a message that does not end in time", async () => {
  const inbox = open();
  await inbox.take(part(2 * mib));
  await vi.advanceTimersByTimeAsync(29_000);
  expect(slow).toBe(0);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(slow).toBe(1);
  inbox.clear();
});

test("rejects a message longer than 100 MiB", async () => {
  const inbox = open();
  await inbox.take(part(maxClientMessage));
  await expect(inbox.take(part(1))).rejects.toThrow("exceeds");
  inbox.clear();
});
