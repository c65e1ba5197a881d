import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DetectionTimer } from "../../workers/bot-checks/detection-timer.ts";

/** Duration of a detection in milliseconds. */
const detectionMs = 50;

let starts: number[];
let detecting: (() => void) | undefined;
let timer: DetectionTimer;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  starts = [];
  detecting = undefined;
  const beganAt = performance.now();
  timer = new DetectionTimer(async () => {
    starts.push(performance.now() - beganAt);
    const ended = new Promise((resolve) => setTimeout(resolve, detectionMs));
    detecting?.();
    await ended;
  });
});

afterEach(() => vi.useRealTimers());

test("each further delay starts at the end of the previous detection", async () => {
  timer.schedule([100, 400, 1_000]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(starts).toEqual([100, 550, 1_600]);
});

test("no delay is lost if the delays are replaced during a detection", async () => {
  timer.runNow();
  await vi.advanceTimersByTimeAsync(20);
  timer.schedule([100, 400, 1_000]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(starts).toEqual([0, 120, 570, 1_620]);
});

test("no delay is lost if an earlier detection is scheduled during a detection", async () => {
  timer.schedule([100, 1_000, 3_000]);
  detecting = () => {
    if (starts.length === 1) timer.runAfter(500);
  };
  await vi.advanceTimersByTimeAsync(10_000);
  expect(starts).toEqual([100, 600, 1_650, 4_700]);
});

test("a later detection scheduled during a detection does not postpone a delay", async () => {
  timer.schedule([100, 400]);
  detecting = () => {
    if (starts.length === 1) timer.runAfter(5_000);
  };
  await vi.advanceTimersByTimeAsync(10_000);
  expect(starts).toEqual([100, 550]);
});

test("an empty list during a detection cancels all detections", async () => {
  timer.schedule([100, 400, 1_000]);
  detecting = () => timer.schedule([]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(starts).toEqual([100]);
});
