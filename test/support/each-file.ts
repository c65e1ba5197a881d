import { afterAll, afterEach, expect } from "vitest";
import { takeLeaks } from "./leaks.ts";
import { forgetLogs, saveLogs } from "./logs.ts";

// Runs for every test file. Files of some tiers share a process, where output of an earlier file may arrive late.
takeLeaks();
forgetLogs();

afterEach(({ task }) => {
  if (task.result?.state === "fail") console.error(`logs of the failed test: ${saveLogs(task.file.name, task.name)}`);
});

// No service of the file may write secrets to its logs or metrics.
afterAll(() => expect(takeLeaks()).toEqual([]));
