import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SessionEndedReason, WaitUntil } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import { maxTasks } from "../../workers/isolation/session-bounds.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { withLong } from "../support/long-test.ts";
import { descendantsOf } from "../support/process-list.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

const mib = 2 ** 20;

/** Milliseconds for a page to exceed a limit and for the worker to detect it. */
const timeout = 20_000;

/** Low enough to be exceeded quickly, and high enough for full Chromium. */
const bounds = { memoryBytes: 700 * mib, tasks: 280, diskBytes: 96 * mib };

let site: FixtureSite;
let worker: WorkerUnderTest;
let bystander: DrivenSession;

beforeAll(async () => {
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host], { bounds });
  bystander = await worker.open();
  await bystander.navigate({ url: site.url("/plain.html") });
});

afterAll(async () => {
  await worker.stop();
  await site.stop();
});

/** Main browser processes. Child processes start and end at any time. */
const browsers = () =>
  descendantsOf(process.pid).filter(({ command }) => /chrom/.test(command) && !command.includes("--type="));

const inMemory = /exceeded its bound of 700 MiB of memory: it used \d+ MiB$/;

test.for(
  withLong<[what: string, runtime: BrowserRuntime, path: string, detail: RegExp]>(
    [
      ["memory", "headless-shell", "/eat.html?megabytes=900", inMemory],
      ["tasks", "headless-shell", "/breed.html?workers=300", /exceeded its bound of 280 tasks: it used \d+$/],
      ["disk", "chromium", "/hoard.html?megabytes=160", /exceeded its bound of 96 MiB on disk: it used \d+ MiB$/],
    ],
    [["memory", "chromium", "/eat.html?megabytes=900", inMemory]],
  ),
)(
  "a session whose page uses too much %s ends, in %s, without affecting others",
  { timeout: 90_000 },
  async ([, runtime, path, detail]) => {
    const before = browsers().length;
    const session = await worker.open({ runtime });
    await session.navigate({ url: site.url(path), waitUntil: WaitUntil.COMMIT });
    const endOf = () => worker.happenings.find(({ sessionId }) => sessionId === session.placement.sessionId)?.event;
    await expect
      .poll(endOf, { timeout })
      .toEqual({ case: "ended", value: { reason: SessionEndedReason.CRASHED, detail: expect.stringMatching(detail) } });
    await expect(session.state()).rejects.toMatchObject({ slug: "session-destroyed" });
    await expect.poll(() => browsers().length, { timeout }).toBe(before);
    expect(await bystander.navigate({ url: site.url("/plain.html") })).toMatchObject({ httpStatus: 200 });
  },
);

test("page storage and session files share the disk limit", { timeout: 60_000 }, async () => {
  const session = await worker.open({ runtime: "chromium" });
  for (let part = 0; part < 20; part += 1) await session.putFile(`part ${part}`, Buffer.alloc(3 * mib, 1));
  await session.navigate({ url: site.url("/hoard.html?megabytes=60"), waitUntil: WaitUntil.COMMIT });
  const endOf = () => worker.happenings.find(({ sessionId }) => sessionId === session.placement.sessionId)?.event;
  const detail = expect.stringMatching(/exceeded its bound of 96 MiB on disk: it used \d+ MiB$/);
  await expect
    .poll(endOf, { timeout })
    .toEqual({ case: "ended", value: { reason: SessionEndedReason.CRASHED, detail } });
});

test("sessions within their limits continue", async () => {
  const session = await worker.open({ runtime: "chromium" });
  await session.navigate({ url: site.url("/eat.html?megabytes=64") });
  await expect.poll(async () => (await session.state()).title, { timeout }).toBe("Full");
  const seen = worker.happenings.map(({ sessionId }) => sessionId);
  expect(seen).not.toContain(session.placement.sessionId);
  expect(seen).not.toContain(bystander.placement.sessionId);
  await session.destroy();
});

test("the kernel limits the tasks of a slot with its own uid", () => {
  const own = process.getuid?.() ?? 0;
  const slots = browsers().filter(({ uid }) => uid !== own);
  const limits = slots.map(({ pid }) =>
    /^Max processes\s+(\d+)\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8")),
  );
  expect(limits.length > 0).toBe(own === 0);
  expect(limits.map((found) => [found?.[1], found?.[2]])).toEqual(
    limits.map(() => [String(maxTasks), String(maxTasks)]),
  );
});
