// node tools/testing/record-run.ts <report>: records a run from vitest's JSON report. Writes results to long.jsonl and
// durations of files to durations.json. Failed files keep their old durations.
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";

interface Report {
  readonly startTime: number;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly { name: string; status: string; startTime: number; endTime: number }[];
}

const fileHere = (name: string): URL => new URL(name, import.meta.url);
const [path = ""] = process.argv.slice(2);
const report: Report = JSON.parse(readFileSync(path, "utf8"));

const durations = new Map(Object.entries<number>(JSON.parse(readFileSync(fileHere("durations.json"), "utf8"))));
for (const { name, status, startTime, endTime } of report.testResults) {
  if (status === "passed") durations.set(relative(process.cwd(), name), Math.round((endTime - startTime) / 100) / 10);
}
const kept = [...durations].filter(([path]) => existsSync(path)).toSorted(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(fileHere("durations.json"), `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`);

const run = {
  commit: execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim(),
  date: new Date(report.startTime).toISOString(),
  seconds: Math.round((Date.now() - report.startTime) / 1_000),
  files: report.testResults.length,
  passed: report.numPassedTests,
  failed: report.numFailedTests,
  failedFiles: report.testResults
    .filter(({ status }) => status !== "passed")
    .map(({ name }) => relative(process.cwd(), name)),
};
appendFileSync(fileHere("long.jsonl"), `${JSON.stringify(run)}\n`);
