import { setImmediate as breathe } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CaptureFormat, CaptureKind } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

// Needs its own process, because the count of how often a long job yields replaces a module.
vi.mock("node:timers/promises", async (importOriginal) => {
  const timers = await importOriginal<typeof import("node:timers/promises")>();
  return { ...timers, setImmediate: vi.fn(timers.setImmediate) };
});

const { MHTML, HTML } = CaptureFormat;

let site: FixtureSite;
let worker: WorkerUnderTest;
let session: DrivenSession;

beforeAll(async () => {
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host]);
  session = await worker.open();
  await session.navigate({ url: site.url("/large-frame.html") });
});

afterAll(async () => {
  await session?.destroy();
  await worker?.stop();
  await site?.stop();
});

// Nine slices each: a frame's document is escaped for its attribute, and then encoded with the rest.
test.each([
  ["a DOM snapshot", HTML, 2 * 8],
  ["MHTML", MHTML, 8],
])("yields to other work while %s with a large frame is written", async (_name, format, turns) => {
  vi.mocked(breathe).mockClear();
  const { data } = await session.capture({ kind: CaptureKind.DOM_SNAPSHOT, format });
  expect(data.length).toBeGreaterThan(9 * 2 ** 20);
  expect(vi.mocked(breathe).mock.calls.length).toBeGreaterThanOrEqual(turns);
});
