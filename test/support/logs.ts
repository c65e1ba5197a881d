import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { basename, join, relative } from "node:path";
import { watchForSecrets } from "./leaks.ts";

/** Characters of the newest log lines that are kept for a test that fails. */
const mostKept = 4_000_000;

let lines: string[] = [];
let kept = 0;
const files = new Set<string>();

/** Records what a service or a process of it has logged: it must hold no secret, and is kept if a test fails. */
export function recordLog(text: string): void {
  watchForSecrets(text);
  lines.push(text);
  kept += text.length;
  while (kept > mostKept) kept -= lines.shift()?.length ?? kept;
}

/** Names a file that a process logs to, such as the worker of an embedded service. It is kept if a test fails. */
export function recordLogFile(path: string): void {
  files.add(path);
}

/** Forgets everything: the next test file begins. */
export function forgetLogs(): void {
  lines = [];
  kept = 0;
  files.clear();
}

/** Writes the logs and the load of the machine to a folder of the failed test, and returns its path. */
export function saveLogs(file: string, name: string): string {
  const words = `${relative("test", file)} ${name}`.replaceAll(/[^\w.]+/g, "-").slice(0, 150);
  const folder = join(".cache", "failed-tests", words);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "services.log"), lines.join(""));
  const pressure = readIfAny("/proc/pressure/cpu") ?? "";
  const state = { file, name, at: new Date().toISOString(), load: loadavg(), cores: cpus().length, pressure };
  writeFileSync(join(folder, "machine.json"), `${JSON.stringify(state, undefined, 2)}\n`);
  for (const path of files) {
    // A service that has stopped has removed its data.
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
