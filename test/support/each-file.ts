import { afterAll, afterEach, expect } from "vitest";
import { takeLeaks } from "./leaks.ts";
import { forgetLogs, saveLogs } from "./logs.ts";

afterEach(({ task }) => {
  if (task.result?.state === "fail") console.error(`logs of the failed test: ${saveLogs(task.file.name, task.name)}`);
});

// For every test file: no service that it ran has written a secret into its log or its metrics.
afterAll(() => {
  forgetLogs();
  expect(takeLeaks()).toEqual([]);
});
