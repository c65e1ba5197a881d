import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateProfileRequestSchema } from "../../src/gen/pilothouse/v1/profile_pb.ts";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { createLog } from "../../src/platform/log.ts";
import { createProfileService } from "../../src/profiles/service.ts";
import type { FakeWorker } from "../support/fake-worker.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

/** Registers a worker, preferred by placement, on which every launch fails. */
async function failingWorker(running: SessionsApp, extensions: { launch_failed?: true }) {
  const tries: string[] = [];
  const worker = await running.worker({
    slots: 100,
    handlers: {
      create: (_call, { context }) => {
        tries.push(context?.sessionId ?? "");
        return Promise.reject(fail("driver-error", extensions, { detail: "no browser" }));
      },
    },
  });
  return { worker, tries };
}

/** Registers a working worker, ranked after others because half of its slots are taken. */
async function soundWorker(running: SessionsApp): Promise<FakeWorker> {
  const worker = await running.worker({ slots: 2 });
  const call = await running.caller();
  await running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  return worker;
}

async function begin(running: SessionsApp, request: MessageInitShape<typeof CreateSessionRequestSchema> = {}) {
  const call = await running.caller();
  const profiles = createProfileService(running.app);
  if (request.profileId !== undefined) {
    const { id } = await profiles.create(call(), create(CreateProfileRequestSchema, { name: "Shop" }));
    return running.sessions.create(call(), create(CreateSessionRequestSchema, { ...request, profileId: id }));
  }
  return running.sessions.create(call(), create(CreateSessionRequestSchema, request));
}

test("retries a launch once on another worker when it fails before the browser answers", async () => {
  await using running = await startSessionsApp();
  const sound = await soundWorker(running);
  const { tries } = await failingWorker(running, { launch_failed: true });
  const { id } = await begin(running);
  expect(tries).toEqual([id]);
  expect(sound.held.size).toBe(2);
});

test.for([
  ["after the browser has answered", {}, {}],
  ["with a profile", { launch_failed: true }, { profileId: "one of the account's" }],
] as const)("does not retry a launch that fails %s on another worker", async ([, extensions, request]) => {
  await using running = await startSessionsApp();
  const sound = await soundWorker(running);
  const { tries } = await failingWorker(running, extensions);
  await expect(begin(running, request)).rejects.toMatchObject({ slug: "driver-error", detail: "no browser" });
  expect([tries.length, sound.held.size]).toEqual([1, 1]);
});

test("answers driver-error when a launch fails on two workers", async () => {
  await using running = await startSessionsApp();
  const workers = [1, 2, 3].map(() => failingWorker(running, { launch_failed: true }));
  const tries = (await Promise.all(workers)).map((worker) => worker.tries);
  const expected = { slug: "driver-error", extensions: { launch_failed: true }, detail: "no browser" };
  await expect(begin(running)).rejects.toMatchObject(expected);
  expect(tries.flat()).toHaveLength(2);
});

test("tells a worker that cannot be reached apart from a lack of capacity, in the answer, the log and the metric", async () => {
  const lines: unknown[] = [];
  const log = createLog("info", { write: (line) => lines.push(JSON.parse(line)) });
  await using running = await startSessionsApp({ QUEUE_MS: "0" }, { log });
  const unreachable = async () => {
    const metric = running.app.metrics.getSingleMetric("pilothouse_session_launch_unreachable_total");
    return (await metric?.get())?.values[0]?.value;
  };
  await expect(begin(running)).rejects.toMatchObject({ slug: "capacity-unavailable" });
  expect(await unreachable()).toBe(0);
  const worker = await running.worker();
  const { id } = worker;
  worker.die();
  await expect(begin(running)).rejects.toMatchObject({
    slug: "internal",
    detail: "the browser's machine could not be reached, or was lost: try again in a moment",
    retryAfter: 2,
  });
  expect(await unreachable()).toBe(1);
  expect(lines).toContainEqual(
    expect.objectContaining({
      msg: "failed to reach a worker",
      worker_id: id,
      err: expect.objectContaining({ message: expect.stringContaining("ECONNREFUSED") }),
    }),
  );
});
