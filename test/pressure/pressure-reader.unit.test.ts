import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { PressureReader } from "../../workers/pressure/pressure-reader.ts";

const gib = 2 ** 30;
const meminfo = (total: number, available: number) =>
  `MemTotal:       ${(total * gib) / 1_024} kB\nMemFree:        1 kB\nMemAvailable:   ${(available * gib) / 1_024} kB\n`;
const stall = (some: number, full: number) =>
  `some avg10=${some.toFixed(2)} avg60=0.00 avg300=0.00 total=1\nfull avg10=${full.toFixed(2)} avg60=0.00 avg300=0.00 total=1\n`;
const version1 = "33 32 0:28 / /sys/fs/cgroup/memory rw,relatime shared:10 - cgroup cgroup rw,memory\n";
const version2 = "35 32 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

/** Files of a machine with four idle cores and 16 GiB of memory, half of it in use. */
const idle = {
  "proc/meminfo": meminfo(16, 8),
  "proc/loadavg": "0.10 0.20 0.30 1/400 4711\n",
  "proc/pressure/memory": stall(0, 0),
  "proc/pressure/cpu": stall(0, 0),
  "proc/self/cgroup": "0::/\n",
  "proc/self/mountinfo": version2,
};

type Files = Readonly<Record<string, string>>;

const cases: readonly [string, Files, { memory: number; memory_stall: number; cpu: number }][] = [
  ["the machine's memory", idle, { memory: 0.5, memory_stall: 0, cpu: 0 }],
  [
    "the nearest limiting group of version 2, without its reclaimable files",
    {
      ...idle,
      "proc/self/cgroup": "0::/pods/worker/leaf\n",
      "sys/fs/cgroup/pods/worker/leaf/memory.max": "max\n",
      "sys/fs/cgroup/pods/worker/leaf/memory.high": "max\n",
      "sys/fs/cgroup/pods/worker/leaf/memory.current": `${gib}\n`,
      "sys/fs/cgroup/pods/worker/memory.max": `${4 * gib}\n`,
      "sys/fs/cgroup/pods/worker/memory.high": "max\n",
      "sys/fs/cgroup/pods/worker/memory.current": `${4 * gib}\n`,
      "sys/fs/cgroup/pods/worker/memory.stat": `anon ${3 * gib}\nfile ${gib}\ninactive_file ${gib}\nactive_file 0\n`,
      "sys/fs/cgroup/pods/worker/memory.pressure": stall(30, 25),
    },
    { memory: 0.75, memory_stall: 0.25, cpu: 0 },
  ],
  [
    "memory.high as a limit, since the kernel slows a group down above it",
    {
      ...idle,
      "proc/self/cgroup": "0::/worker\n",
      "sys/fs/cgroup/worker/memory.max": `${8 * gib}\n`,
      "sys/fs/cgroup/worker/memory.high": `${2 * gib}\n`,
      "sys/fs/cgroup/worker/memory.current": `${1.5 * gib}\n`,
    },
    { memory: 0.75, memory_stall: 0, cpu: 0 },
  ],
  [
    "a container's group where only its part of the tree is mounted",
    {
      ...idle,
      "proc/self/cgroup": "0::/docker/abc\n",
      "proc/self/mountinfo": "35 32 0:30 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
      "sys/fs/cgroup/memory.max": `${2 * gib}\n`,
      "sys/fs/cgroup/memory.current": `${1.8 * gib}\n`,
    },
    { memory: 0.9, memory_stall: 0, cpu: 0 },
  ],
  [
    "the limiting group of version 1",
    {
      ...idle,
      "proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/workers/a\n0::/\n",
      "proc/self/mountinfo": version1,
      "sys/fs/cgroup/memory/workers/a/memory.limit_in_bytes": `${2 * gib}\n`,
      "sys/fs/cgroup/memory/workers/a/memory.usage_in_bytes": `${2 * gib}\n`,
      "sys/fs/cgroup/memory/workers/a/memory.stat": `inactive_file 5\ntotal_inactive_file ${0.5 * gib}\n`,
      "sys/fs/cgroup/memory/workers/memory.limit_in_bytes": "9223372036854771712\n",
      "sys/fs/cgroup/memory/workers/memory.usage_in_bytes": `${2 * gib}\n`,
    },
    { memory: 0.75, memory_stall: 0, cpu: 0 },
  ],
  [
    "the machine where it is tighter than the group",
    {
      ...idle,
      "proc/meminfo": meminfo(16, 1),
      "proc/self/cgroup": "0::/worker\n",
      "sys/fs/cgroup/worker/memory.max": `${8 * gib}\n`,
      "sys/fs/cgroup/worker/memory.current": `${gib}\n`,
    },
    { memory: 15 / 16, memory_stall: 0, cpu: 0 },
  ],
  [
    "the share of time that tasks wait for a core",
    { ...idle, "proc/loadavg": "9.00 9.00 9.00 16/400 4711\n", "proc/pressure/cpu": stall(99, 0) },
    { memory: 0.5, memory_stall: 0, cpu: 0.75 },
  ],
  [
    "no more waiting for cores than the kernel has seen",
    { ...idle, "proc/loadavg": "9.00 9.00 9.00 16/400 4711\n", "proc/pressure/cpu": stall(20, 0) },
    { memory: 0.5, memory_stall: 0, cpu: 0.2 },
  ],
  [
    "waiting for cores where the kernel has no pressure files",
    { ...idle, "proc/loadavg": "9.00 9.00 9.00 8/400 4711\n", "proc/pressure/cpu": "" },
    { memory: 0.5, memory_stall: 0, cpu: 0.5 },
  ],
  [
    "a group that its quota throttles while the machine is idle",
    {
      ...idle,
      "proc/self/cgroup": "0::/worker\n",
      "sys/fs/cgroup/worker/cpu.max": "200000 100000\n",
      "sys/fs/cgroup/worker/cpu.pressure": stall(95, 60),
    },
    { memory: 0.5, memory_stall: 0, cpu: 0.6 },
  ],
  ["zero without data of the kernel", {}, { memory: 0, memory_stall: 0, cpu: 0 }],
];

/** Writes the files of a machine, and returns their root. */
function write(files: Files): string {
  const root = mkdtempSync(join(tmpdir(), "pressure-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

test.for(cases)("the pressure is that of %s", ([, files, wanted]) => {
  const reader = new PressureReader(write(files), 4);
  reader.read(0);
  const { memory, memory_stall, cpu } = reader.read(600_000);
  expect({ memory, memory_stall, cpu }).toEqual({
    memory: expect.closeTo(wanted.memory, 5),
    memory_stall: expect.closeTo(wanted.memory_stall, 5),
    cpu: expect.closeTo(wanted.cpu, 5),
  });
});

test("a queue of tasks counts for two thirds after 10 s", () => {
  const queue = { ...idle, "proc/loadavg": "9.00 9.00 9.00 100/400 4711\n", "proc/pressure/cpu": stall(100, 0) };
  const reader = new PressureReader(write(queue), 4);
  reader.read(0);
  expect(reader.read(10_000).cpu).toBeCloseTo(1 - 4 / 63.2, 3);
});
