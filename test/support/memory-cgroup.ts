import { mkdirSync, rmdirSync, statSync, writeFileSync } from "node:fs";

const v1 = "/sys/fs/cgroup/memory";
const v2 = "/sys/fs/cgroup";

/** Control group with a memory limit, version 1 or 2. Requires root. */
export class MemoryCgroup implements Disposable {
  readonly directory: string;

  constructor(bytes: number) {
    const isVersion1 = statSync(v1, { throwIfNoEntry: false }) !== undefined;
    this.directory = `${isVersion1 ? v1 : v2}/pilothouse-test-${process.pid}`;
    mkdirSync(this.directory);
    writeFileSync(`${this.directory}/${isVersion1 ? "memory.limit_in_bytes" : "memory.max"}`, String(bytes));
  }

  /** Removes the group. Its processes must have exited. */
  [Symbol.dispose](): void {
    rmdirSync(this.directory);
  }
}
