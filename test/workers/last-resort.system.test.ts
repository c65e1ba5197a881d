import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

test("ends only the session whose browser's message caused a fault, as crashed", async () => {
  const script = new URL("faulty-worker.ts", import.meta.url).pathname;
  const { stdout } = await run(process.execPath, ["--no-warnings", script], { timeout: 60_000 });
  expect(JSON.parse(stdout)).toEqual({
    ended: [true, true, true],
    title: "Plain",
    errors: ["uncaught error"],
  });
}, 90_000);
