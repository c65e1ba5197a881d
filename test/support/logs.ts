import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { basename, join, relative } from "node:path";
import { watchForSecrets } from "./leaks.ts";

/** Characters of the newest log lines that are kept for failed tests. */
const maxKept = 4_000_000;

let lines: string[] = [];
let kept = 0;
const files = new Set<string>();

/** Records log output of a service, which must not contain secrets. The output is saved if a test fails. */
export function recordLog(text: string): void {
  watchForSecrets(text);
  lines.push(text);
  kept += text.length;
  while (kept > maxKept) kept -= lines.shift()?.length ?? kept;
}

/** Registers a log file of a process, such as an embedded service's worker. The file is saved if a test fails. */
export function recordLogFile(path: string): void {
  files.add(path);
}

/** Clears all records before the next test file. */
export function forgetLogs(): void {
  lines = [];
  kept = 0;
  files.clear();
}

/** Writes the logs and the machine's load to a folder of the failed test. Returns the folder's path. */
export function saveLogs(file: string, name: string): string {
  const words = `${relative("test", file)} ${name}`.replaceAll(/[^\w.]+/g, "-").slice(0, 150);
  const folder = join(".cache", "failed-tests", words);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "services.log"), lines.join(""));
  const pressure = readIfAny("/proc/pressure/cpu") ?? "";
  const state = { file, name, at: new Date().toISOString(), load: loadavg(), cores: cpus().length, pressure };
  writeFileSync(join(folder, "machine.json"), `${JSON.stringify(state, undefined, 2)}\n`);
  for (const path of files) {
    // A stopped service has removed its data.
    if (readIfAny(path) !== undefined) cpSync(path, join(folder, `${basename(join(path, ".."))}-${basename(path)}`));
  }
  return folder;
}

function readIfAny(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
