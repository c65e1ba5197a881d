import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import { create, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  SessionLogPageSchema,
  type StoreLogsRequest,
  StoreLogsResponseSchema,
} from "../../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { LogSender, type LogSenderOptions, logSizes, packLog } from "../../../workers/fleet/log-sender.ts";

const pageOf = (init: MessageInitShape<typeof SessionLogPageSchema> = {}) => create(SessionLogPageSchema, init);
const open = async (data: Uint8Array) => fromBinary(SessionLogPageSchema, await promisify(zstdDecompress)(data));
const placement = (number: number) => ({ sessionId: `ses_${number}`, placementEpoch: 1n });

/** Entries that can hardly be compressed. */
const noise = (count: number, bytes: number) =>
  Array.from({ length: count }, (_, index) => ({
    id: String(index + 1),
    text: randomBytes(bytes / 2).toString("hex"),
  }));

function startSender(answer: (request: StoreLogsRequest) => number | undefined, storesLogs = true) {
  const outcomes = { stored: 0, lost: 0 };
  const requests: StoreLogsRequest[] = [];
  const link = {
    storesLogs,
    async call(_method: unknown, makeRequest: (incarnation: bigint) => unknown) {
      const request = makeRequest(1n) as StoreLogsRequest;
      requests.push(request);
      const stored = answer(request);
      return stored === undefined ? undefined : create(StoreLogsResponseSchema, { stored });
    },
  } as unknown as LogSenderOptions["link"];
  const sender = new LogSender({
    link,
    onOutcome: (outcome, count) => {
      outcomes[outcome] += count;
    },
  });
  return { sender, outcomes, requests };
}

test("a log that is too long when compressed loses its oldest entries", async () => {
  const read = () => pageOf({ dropped: 3, entries: noise(500, 500) });
  const data = await packLog(read);
  expect(data.length).toBeLessThanOrEqual(logSizes.log);
  const { entries, dropped } = await open(data);
  expect([entries.at(-1)?.id, entries.length + dropped]).toEqual(["500", 503]);
  expect(entries.length).toBeGreaterThan(0);
});

test("logs that end during a call are sent together in calls of at most 1 MiB", async () => {
  const { sender, outcomes, requests } = startSender(({ logs }) => logs.length);
  for (let number = 0; number < 60; number += 1)
    sender.add(placement(number), () => pageOf({ entries: noise(110, 500) }));
  await sender.stop();
  expect(outcomes).toEqual({ stored: 60, lost: 0 });
  const sizes = requests.map(({ logs }) => logs.reduce((sum, { data }) => sum + data.length, 0));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(logSizes.batch);
  expect(requests.flatMap(({ logs }) => logs.map(({ sessionId }) => sessionId))).toHaveLength(60);
});

test("a failed call loses its logs and is not repeated", async () => {
  const { sender, outcomes, requests } = startSender(() => undefined);
  sender.add(placement(1), () => pageOf());
  await sender.stop();
  expect([outcomes, requests.length]).toEqual([{ stored: 0, lost: 1 }, 1]);
});

test("an unreadable log is lost, and others are sent", async () => {
  const { sender, outcomes } = startSender(({ logs }) => logs.length);
  sender.add(placement(1), () => {
    throw new Error("unreadable");
  });
  sender.add(placement(2), () => pageOf());
  await sender.stop();
  expect(outcomes).toEqual({ stored: 1, lost: 1 });
});

test("nothing is sent to a control process that stores no logs", async () => {
  const { sender, outcomes, requests } = startSender(() => 1, false);
  sender.add(placement(1), () => pageOf());
  await sender.stop();
  expect([outcomes, requests]).toEqual([{ stored: 0, lost: 1 }, []]);
});

test("sessions that end beyond 100 at once lose their logs", async () => {
  const { sender, outcomes } = startSender(({ logs }) => logs.length);
  for (let number = 0; number < 150; number += 1) sender.add(placement(number), () => pageOf());
  await sender.stop();
  expect(outcomes.stored + outcomes.lost).toBe(150);
  expect(outcomes.lost).toBeGreaterThanOrEqual(49);
});
