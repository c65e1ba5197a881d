// node tools/testing/record-durations.ts <results>: notes in durations.json how long the files of a run took, as vitest's
// JSON reporter has written it. Files that have failed keep what they had.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";

interface Results {
  readonly testResults: readonly { name: string; status: string; startTime: number; endTime: number }[];
}

const file = new URL("durations.json", import.meta.url);
const [results = ""] = process.argv.slice(2);
const { testResults }: Results = JSON.parse(readFileSync(results, "utf8"));
const durations = new Map(Object.entries<number>(JSON.parse(readFileSync(file, "utf8"))));
for (const { name, status, startTime, endTime } of testResults) {
  if (status === "passed") durations.set(relative(process.cwd(), name), Math.round((endTime - startTime) / 100) / 10);
}
const kept = [...durations].filter(([path]) => existsSync(path)).toSorted(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(file, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`);
