import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";

test("a process continues to run after the reader of its log is gone", async () => {
  const script = new URL("lost-output.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, ["--no-warnings", script], { stdio: "pipe" });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stderr.destroy();
  child.stdin.end("log");
  expect(await text(child.stdout)).toBe("0");
});
