import { afterAll, afterEach, expect } from "vitest";
import { takeLeaks } from "./leaks.ts";
import { forgetLogs, saveLogs } from "./logs.ts";

// For every test file. Files of some tiers share a process: what the file before has written after its end is not of
// this one.
takeLeaks();
forgetLogs();

afterEach(({ task }) => {
  if (task.result?.state === "fail") console.error(`logs of the failed test: ${saveLogs(task.file.name, task.name)}`);
});

// No service that the file ran has written a secret into its log or its metrics.
afterAll(() => expect(takeLeaks()).toEqual([]));
