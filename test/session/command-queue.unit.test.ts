import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { CommandQueue } from "../../workers/session/command-queue.ts";

test.each(["drop", "pause", "close"] as const)("%s removes the abort listeners of rejected commands", async (end) => {
  const queue = new CommandQueue();
  const { promise: running, resolve } = Promise.withResolvers<void>();
  const first = queue.run({ kind: "wait", whilePaused: true, dropped: new AbortController().signal }, () => running);
  const { signal } = new AbortController();
  const queued = queue.run({ kind: "wait", whilePaused: false, dropped: signal }, async () => undefined);
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  queue[end](new Error("ended"));
  await expect(queued).rejects.toThrow("ended");
  expect(getEventListeners(signal, "abort")).toEqual([]);
  resolve();
  await first;
});
