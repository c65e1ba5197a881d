import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { MemoryCgroup } from "../support/memory-cgroup.ts";

const readSlots = `
  const { readWorkerConfig } = await import("./workers/base/config.ts");
  const env = { CONTROL: "127.0.0.1:1", WORKER_LISTEN: "127.0.0.1:1", WORKER_TOKEN: "a token of the tests alone" };
  console.log(readWorkerConfig(env).slots);
`;

test("the default of WORKER_SLOTS follows the memory limit of the worker's cgroup", () => {
  using cgroup = new MemoryCgroup(3 * 1024 ** 3);
  const join = `echo $$ > ${cgroup.directory}/cgroup.procs; exec "$0" --input-type=module -e "$1"`;
  const slots = execFileSync("sh", ["-c", join, process.execPath, readSlots], { encoding: "utf8" });
  expect(slots.trim()).toBe("3");
});
