import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { expect, onTestFinished, test, vi } from "vitest";
import { CommandContextSchema, type InputPart, InputPartSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type InputEvent, InputEventSchema } from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { type InputReceipt, InputSender, type OpenInput } from "../../src/sessions/commands/input-sender.ts";
import { InputIntake } from "../../workers/input/input-intake.ts";
import { SessionControl } from "../../workers/session/client-control.ts";

const never = new AbortController().signal;
const key = (name: string): InputEvent =>
  create(InputEventSchema, { event: { case: "keyDown", value: { key: name } } });
const keys = (from: number, count: number) => Array.from({ length: count }, (_, index) => key(String(from + index)));

/** An input queue for a session in Anna's control, whose player accepts `room` keys at first. */
function makeIntake(room = Number.POSITIVE_INFINITY) {
  const dispatched: string[] = [];
  const ended = new AbortController();
  let roomFreed = Promise.withResolvers<void>();
  let left = room;
  let releases = 0;
  const quiet = { drop: () => {}, release: async () => {}, settled: async () => {}, changed: () => {} };
  const control = new SessionControl(quiet);
  control.learn({ controlEpoch: 1n, holderClientId: "anna" });
  const inputQueue = {
    get roomFreed() {
      return roomFreed.promise;
    },
    push(events: readonly InputEvent[]) {
      const taken = events.slice(0, left);
      left -= taken.length;
      for (const { event } of taken) dispatched.push(event.case === "keyDown" ? event.value.key : "?");
      return { accepted: taken.length, dropped: 0 };
    },
    release: () => {
      releases += 1;
    },
  };
  const intake = new InputIntake({ inputQueue, control, ended: ended.signal, onInput: () => undefined });
  return {
    intake,
    dispatched,
    control,
    ended,
    /** Accepts more keys. */
    ease(more: number) {
      left += more;
      roomFreed.resolve();
      roomFreed = Promise.withResolvers();
    },
    releases: () => releases,
  };
}

async function* partsOf(...parts: Partial<InputPart>[]): AsyncGenerator<InputPart> {
  for (const [index, { $typeName: _, ...part }] of parts.entries()) {
    yield create(InputPartSchema, { clientId: "anna", streamId: "one", number: index + 1, ...part });
  }
}

async function lastOf<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  let last: T | undefined;
  for await (const item of items) last = item;
  return last;
}

test("takes a repeated part once, and refuses a part whose predecessor is missing", async () => {
  const { intake, dispatched } = makeIntake();
  const first = { events: keys(0, 2) };
  const second = { events: keys(2, 2) };
  expect(await lastOf(intake.follow(partsOf(first), never))).toMatchObject({ number: 1, accepted: 2, dropped: 0 });
  expect(await lastOf(intake.follow(partsOf(first, second), never))).toMatchObject({ number: 2, accepted: 4 });
  expect(dispatched).toEqual(["0", "1", "2", "3"]);
  await expect(lastOf(intake.follow(partsOf({ number: 4, events: keys(9, 1) }), never))).rejects.toThrow(
    "expected input part 3, got 4",
  );
  // Another stream has its own sequence numbers.
  await lastOf(intake.follow(partsOf({ streamId: "two", events: keys(4, 1) }), never));
  expect(dispatched).toEqual(["0", "1", "2", "3", "4"]);
});

test("waits for room whichever of two calls brings a part, and ends with the session", async () => {
  const { intake, dispatched, ease, ended } = makeIntake(3);
  const calls = [1, 2].map(() => lastOf(intake.follow(partsOf({ events: keys(0, 8) }), never)));
  const third = lastOf(intake.follow(partsOf({ streamId: "two", events: keys(20, 8) }), never));
  await expect.poll(() => dispatched).toEqual(["0", "1", "2"]);
  ease(2);
  await expect.poll(() => dispatched.length).toBe(5);
  ease(3);
  for (const call of calls) expect(await call).toMatchObject({ number: 1, accepted: 8, dropped: 0 });
  expect(dispatched).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
  ended.abort(fail("session-destroyed", { ended_reason: "deleted", ended_at: "" }, { detail: "ended" }));
  await expect(third).rejects.toMatchObject({ slug: "session-destroyed" });
});

test("drops input of a client without control, and queued input when control is lost", async () => {
  const { intake, dispatched, ease, releases } = makeIntake(1);
  const stranger = intake.follow(partsOf({ clientId: "ben", events: keys(9, 2), release: true }), never);
  expect(await lastOf(stranger)).toMatchObject({ number: 1, accepted: 0, dropped: 2 });
  // Ben must not release Anna's keys.
  expect(releases()).toBe(0);
  const waits = lastOf(intake.follow(partsOf({ streamId: "three", events: keys(0, 3), release: true }), never));
  await expect.poll(() => dispatched).toEqual(["0"]);
  const context = create(CommandContextSchema, { controlEpoch: 2n, holderClientId: "ben" });
  const taken = intake.follow(partsOf({ streamId: "two", clientId: "ben", context, release: true }), never);
  expect(await lastOf(taken)).toMatchObject({ number: 1 });
  expect(releases()).toBe(1);
  ease(9);
  expect(await waits).toMatchObject({ number: 1, accepted: 1, dropped: 2 });
  expect(dispatched).toEqual(["0"]);
});

test("delivers input once and in order over a line whose calls keep breaking", async () => {
  const { intake, dispatched } = makeIntake();
  let seed = 7;
  const draw = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((seed / 2 ** 31) * below);
  };
  let calls = 0;
  /** Each call breaks after some parts. Every second call breaks without a response to them. */
  const open: OpenInput = async function* (streamId, parts) {
    calls += 1;
    const isSilent = calls % 2 === 1;
    const cut = isSilent ? draw(2) : 1 + draw(12);
    let read = 0;
    async function* some(): AsyncGenerator<InputPart> {
      for await (const part of parts) {
        if (read === cut) return;
        read += 1;
        yield create(InputPartSchema, { ...part, streamId, clientId: "anna" });
        if (read === cut) return;
      }
    }
    let answers = 0;
    for await (const answer of intake.follow(some(), never)) {
      if (isSilent || (read === cut && answers > 0)) break;
      answers += 1;
      yield answer;
    }
    throw fail("driver-error", { worker_lost: true }, { detail: "lost" });
  };
  let last: InputReceipt | undefined;
  const failures: unknown[] = [];
  const sender = new InputSender(open, {
    onReceipt: (taken) => {
      last = taken;
    },
    onFailed: (thrown) => void failures.push(thrown),
  });
  const count = 600;
  for (let sequence = 1; sequence <= count; sequence += 1) await sender.send({ events: keys(sequence, 1), sequence });
  await sender.drained();
  expect(failures).toEqual([]);
  expect(dispatched).toEqual(Array.from({ length: count }, (_, index) => String(index + 1)));
  expect(last).toEqual({ sequence: count, accepted: count, dropped: 0 });
  expect(calls).toBeGreaterThan(20);
});

test("limits a sender by events and by text until the sender closes, when the worker does not answer", async () => {
  const open: OpenInput = async function* (_streamId, _parts, signal) {
    await once(signal, "abort");
    yield* [];
  };
  const paste = create(InputEventSchema, { event: { case: "paste", value: { text: "x".repeat(262_144) } } });
  for (const [event, max] of [
    [key("a"), 128],
    [paste, 4],
  ] as const) {
    const sender = new InputSender(open, { onReceipt: () => undefined, onFailed: () => undefined });
    let sent = 1;
    while (!sender.send({ events: [event], sequence: sent })) sent += 1;
    expect(sent).toBe(max);
    await sender.close();
  }
});

test("releases an idle sender's call, and continues counting with the next", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { intake, dispatched, releases } = makeIntake();
  const calls = new Set<string>();
  let ended = 0;
  const open: OpenInput = async function* (streamId, parts) {
    calls.add(streamId);
    async function* all(): AsyncGenerator<InputPart> {
      for await (const part of parts) yield create(InputPartSchema, { ...part, streamId, clientId: "anna" });
    }
    yield* intake.follow(all(), never);
    ended += 1;
  };
  let last: InputReceipt | undefined;
  const sender = new InputSender(open, {
    onReceipt: (taken) => {
      last = taken;
    },
    onFailed: () => undefined,
  });
  for (const sequence of [1, 2]) {
    sender.send({ events: keys(2 * sequence, 2), sequence });
    await sender.drained();
    expect(last).toEqual({ sequence, accepted: 2 * sequence, dropped: 0 });
    expect(ended).toBe(sequence - 1);
    vi.advanceTimersByTime(60_000);
    await expect.poll(() => ended).toBe(sequence);
  }
  expect(calls.size).toBe(2);
  // Keys pressed before the pause are released too.
  await sender.close();
  expect([calls.size, releases()]).toEqual([3, 1]);
  expect(dispatched).toEqual(["2", "3", "4", "5"]);
});
