import { expect, test } from "vitest";
import { SessionLogLevel } from "../../../src/gen/pilothouse/v1/session_log_pb.ts";
import { SessionLog, sessionLogBounds } from "../../../workers/pages/session-log.ts";

const open = (level: SessionLogLevel = SessionLogLevel.ERRORS): SessionLog => {
  const log = new SessionLog();
  log.start(level);
  return log;
};

const idsOf = (log: SessionLog, after = 0, limit?: number): number[] =>
  log.read(after, limit).map(({ id }) => Number(id));

test.each([SessionLogLevel.UNSPECIFIED, SessionLogLevel.OFF])("a log at level %i records nothing", (level) => {
  const log = open(level);
  log.add({ type: "crash" });
  expect([log.read(0), log.dropped]).toEqual([[], 0]);
});

test("a log keeps the newest entries within its bounds, and numbers stay", () => {
  const log = open();
  const count = sessionLogBounds.entries + 10;
  for (let left = count; left > 0; left -= 1) log.add({ type: "request", method: "GET" });
  expect([log.dropped, idsOf(log).length, idsOf(log)[0]]).toEqual([10, sessionLogBounds.entries, 11]);
  expect(idsOf(log, 0, 2)).toEqual([11, 12]);
  expect(idsOf(log, 100, 2)).toEqual([101, 102]);
  expect(idsOf(log, count)).toEqual([]);
  expect(idsOf(log, count + 1_000)).toEqual([]);
});

test("a log has at most 256 KiB", () => {
  const log = open();
  for (let left = 2_000; left > 0; left -= 1) log.add({ type: "console", text: "x".repeat(500) });
  const bytes = log.read(0).reduce((sum, { text = "" }) => sum + text.length, 0);
  expect(bytes).toBeLessThan(sessionLogBounds.bytes);
  expect(bytes).toBeGreaterThan(sessionLogBounds.bytes * 0.9);
  expect(log.dropped + log.read(0).length).toBe(2_000);
});

test("a follower receives existing entries, new ones, and all entries before the end", async () => {
  const log = open();
  for (let left = 250; left > 0; left -= 1) log.add({ type: "request" });
  const received: number[] = [];
  const following = (async () => {
    for await (const { id } of log.follow(1, new AbortController().signal)) {
      received.push(Number(id));
      if (received.length === 249) log.add({ type: "request" });
      if (received.length === 250) {
        log.add({ type: "crash" });
        log.close();
        log.add({ type: "request" });
      }
    }
  })();
  await following;
  expect(received).toEqual(Array.from({ length: 251 }, (_, index) => index + 2));
});

test("a follower ends when its client leaves", async () => {
  const client = new AbortController();
  const next = open().follow(0, client.signal).next();
  client.abort();
  expect(await next).toEqual({ done: true, value: undefined });
});
