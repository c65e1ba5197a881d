import { mkdirSync, rmdirSync, statSync, writeFileSync } from "node:fs";

const v1 = "/sys/fs/cgroup/memory";
const v2 = "/sys/fs/cgroup";

/** A control group with a bound on its memory, of whichever version this machine has; takes root. */
export class MemoryCgroup implements Disposable {
  readonly directory: string;

  constructor(bytes: number) {
    const isVersion1 = statSync(v1, { throwIfNoEntry: false }) !== undefined;
    this.directory = `${isVersion1 ? v1 : v2}/pilothouse-test-${process.pid}`;
    mkdirSync(this.directory);
    writeFileSync(`${this.directory}/${isVersion1 ? "memory.limit_in_bytes" : "memory.max"}`, String(bytes));
  }

  /** Removes it, once its processes have ended. */
  [Symbol.dispose](): void {
    rmdirSync(this.directory);
  }
}
