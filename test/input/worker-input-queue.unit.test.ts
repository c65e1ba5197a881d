import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type InputEvent, InputEventSchema } from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { inputOf } from "../../workers/input/page-input.ts";
import { WorkerInputQueue } from "../../workers/input/worker-input-queue.ts";
import { scriptSession } from "../support/scripted-page.ts";

const drag = [
  { case: "pointerDown", value: { x: 1, y: 1 } },
  { case: "pointerMove", value: { x: 9, y: 9 } },
  { case: "pointerUp", value: { x: 9, y: 9 } },
  { case: "keyDown", value: { key: "a" } },
] as const;
const text = { case: "text", value: { text: "b" } } as const;

const eventsOf = (events: readonly object[]): InputEvent[] =>
  events.map((event) => create(InputEventSchema, { event: event as (typeof drag)[number] }));

/** A page whose handling of a drop is delayed until `drop` is called. */
function openPage(name: string, sent: string[]) {
  const dropped = Promise.withResolvers<object>();
  const session = scriptSession({
    "Runtime.evaluate": () => dropped.promise,
    "Input.dispatchMouseEvent": () => ({}),
    "Input.dispatchKeyEvent": ({ type }: { type: string }) => sent.push(`${name} ${type}`),
    "Input.insertText": () => sent.push(`${name} text`),
  });
  return { input: inputOf(session), drop: () => dropped.resolve({}) };
}

test("releases a key whose press waits for a drop", async () => {
  const sent: string[] = [];
  const { input, drop } = openPage("A", sent);
  const queue = new WorkerInputQueue(() => input);
  queue.push(eventsOf(drag));
  queue.release();
  drop();
  await expect.poll(() => sent).toEqual(["A keyDown", "A keyUp"]);
});

test("releases a key of the previous page whose press waits for a drop", async () => {
  const sent: string[] = [];
  const first = openPage("A", sent);
  const second = openPage("B", sent);
  let active = first.input;
  const queue = new WorkerInputQueue(() => active);
  queue.push(eventsOf(drag));
  active = second.input;
  queue.push(eventsOf([text]));
  first.drop();
  await expect.poll(() => sent).toEqual(["A keyDown", "A keyUp", "B text"]);
});

test("releases held keys at once when the queue is cleared during a drop", async () => {
  const sent: string[] = [];
  const { input } = openPage("A", sent);
  const queue = new WorkerInputQueue(() => input);
  queue.push(eventsOf([drag[3], ...drag]));
  queue.clear();
  await expect.poll(() => sent).toEqual(["A keyDown", "A keyUp"]);
});

test("releases held keys of the previous page when the queue is cleared", async () => {
  const sent: string[] = [];
  const { input } = openPage("A", sent);
  let active = input;
  const queue = new WorkerInputQueue(() => active);
  queue.push(eventsOf([drag[3], ...drag]));
  active = openPage("B", sent).input;
  queue.push(eventsOf([text]));
  queue.clear();
  await expect.poll(() => sent).toEqual(["A keyDown", "A keyUp"]);
});
