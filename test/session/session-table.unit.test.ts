import { create } from "@bufbuild/protobuf";
import { expect, test, vi } from "vitest";
import { LaunchRequestSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { BlockKind, SessionEndedReason } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { LaunchFailure } from "../../workers/isolation/browser-process.ts";
import type { BrowserPool } from "../../workers/pool/browser-pool.ts";
import { SessionTable, type SessionTableOptions } from "../../workers/session/session-table.ts";
import { silentLog } from "../support/database.ts";

const context = { sessionId: "ses_1", placementEpoch: 1n, timeoutMs: 0 } as Parameters<SessionTable["create"]>[0];
const plan = { runtime: "headless-shell", archetype: "desktop-chrome", viewport: { width: 800, height: 600 } };
const request = create(LaunchRequestSchema, { plan });

/** Creates the sessions of a worker with a launch function. */
function tableWith(take: BrowserPool["take"], onRoom = () => undefined): SessionTable {
  const browsers = { take, free: 1, launchFails: false } as BrowserPool;
  const runtimes: SessionTableOptions["runtimes"] = new Map([["headless-shell", 143]]);
  const watchdog = { watch: () => undefined } as unknown as SessionTableOptions["watchdog"];
  const ignore = () => undefined;
  return new SessionTable({
    browsers,
    runtimes,
    watchdog,
    showRemedy: false,
    log: silentLog,
    onEvent: ignore,
    onRoom,
  });
}

test.each([
  ["fails", new LaunchFailure("no"), { slug: "driver-error", extensions: { launch_failed: true } }],
  ["throws another error", new Error("no"), { slug: "driver-error", extensions: {} }],
  [
    "is refused",
    fail("capacity-unavailable", {}, { detail: "full" }),
    { slug: "capacity-unavailable", detail: "full" },
  ],
])("a session whose launch %s is removed", async (_, thrown, failure) => {
  const table = tableWith(() => Promise.reject(thrown));
  await expect(table.create(context, request)).rejects.toMatchObject(failure);
  expect([table.running, table.held]).toEqual([[], []]);
});

test("a launch that is interrupted by a stop of the worker reports the stop", async () => {
  const table = tableWith(({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
  const creating = table.create(context, request);
  const refused = expect(creating).rejects.toMatchObject({ slug: "capacity-unavailable", retryAfter: 1 });
  await table.stop(SessionEndedReason.WORKER_DRAINED);
  await refused;
  expect(table.held).toEqual([]);
});

test("a browser that cannot be used is disposed of, and holds its slot until then", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let disposals = 0;
  // A browser without a relay makes the rest of the launch fail.
  const dispose = () => {
    disposals += 1;
    return promise;
  };
  const onRoom = vi.fn();
  const table = tableWith(async () => ({ dispose }) as never, onRoom);
  await expect(table.create(context, create(LaunchRequestSchema, { plan, egressAllow: ["a:1"] }))).rejects.toThrow();
  expect([disposals, table.running, table.held.length]).toEqual([1, [], 1]);
  resolve();
  expect(onRoom).not.toHaveBeenCalled();
  await table.endAll(SessionEndedReason.DESTROYED);
  expect(table.held).toEqual([]);
  await expect.poll(() => onRoom.mock.calls).toHaveLength(1);
});

test("a session that needs a missing list of hosts is refused", async () => {
  const table = tableWith(() => Promise.reject(new Error("launched")));
  const blocking = create(LaunchRequestSchema, { plan: { ...plan, block: { kinds: [BlockKind.ADS] } } });
  const detail = "this worker has no list of ads: the operator can add one with BLOCK_LISTS";
  await expect(table.create(context, blocking)).rejects.toMatchObject({ slug: "driver-not-integrated", detail });
});
