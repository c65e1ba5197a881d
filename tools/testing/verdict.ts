// Judges a run of the tests by vitest's JSON reports. `verdict.ts <flakes> <report>` prints the files to run once more;
// `verdict.ts <flakes> <report> <second report>` prints the flaked tests and `N passed, N failed, N flaked`, and exits
// with 1 if the run has failed.
import { readFileSync } from "node:fs";
import { relative } from "node:path";

/** Used members of vitest's JSON report. */
interface Report {
  readonly numPassedTests?: number;
  readonly numFailedTests?: number;
  readonly success?: boolean;
  readonly testResults?: readonly FileResult[];
}

interface FileResult {
  readonly name: string;
  readonly status: "passed" | "failed";
  readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
}

/** A record of `flakes.jsonl`: a test that failed and then passed. The record is open until `closed` names a commit. */
interface Flake {
  readonly file: string;
  readonly test: string;
  readonly date: string;
  readonly closed?: string;
}

/** If more files fail, the run has failed without a second run. */
const maxFiles = 10;

/** If a file has more open flakes, another flake makes the run fail. */
const maxOpen = 3;

const readReport = (path: string): Report => JSON.parse(readText(path) || "{}");

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function failedFiles({ testResults = [] }: Report): FileResult[] {
  return testResults.filter(({ status }) => status === "failed");
}

function readOpenFlakes(path: string): Flake[] {
  const lines = readText(path).split("\n").filter(Boolean);
  return lines.map((line): Flake => JSON.parse(line)).filter(({ closed }) => closed === undefined);
}

function failedTests({ assertionResults }: FileResult): string[] {
  const names = assertionResults.filter(({ status }) => status === "failed").map(({ fullName }) => fullName);
  return names.length > 0 ? names : ["(the file)"];
}

function judge(open: readonly Flake[], first: Report, second: Report): void {
  const failed = failedFiles(first);
  const passedNow = new Set(second.testResults?.filter(({ status }) => status === "passed").map(({ name }) => name));
  const flaked = failed.filter(({ name }) => passedNow.has(name));
  const failedTwice = failed.filter(({ name }) => !passedNow.has(name)).flatMap(failedTests).length;
  const flakes = flaked.flatMap((file) =>
    failedTests(file).map((test): Flake => {
      return { file: relative(".", file.name), test, date: new Date().toISOString().slice(0, 10) };
    }),
  );
  const unsteady = [...new Set(flakes.map(({ file }) => file))].filter(
    (file) => open.filter((flake) => flake.file === file).length > maxOpen,
  );
  for (const flake of flakes) console.log(`flaked, for tools/testing/flakes.jsonl: ${JSON.stringify(flake)}`);
  for (const file of unsteady) console.log(`${file} has more than ${maxOpen} open flakes: fix its tests`);
  // A failed run without failed files has an error outside of tests.
  const broken = !first.success && failed.length === 0 ? 1 : 0;
  const failures = failedTwice + unsteady.length + broken;
  console.log(`${(first.numPassedTests ?? 0) + flakes.length} passed, ${failures} failed, ${flakes.length} flaked`);
  process.exitCode = failures === 0 ? 0 : 1;
}

const [, , flakesPath = "", firstPath = "", secondPath] = process.argv;
const first = readReport(firstPath);
if (secondPath === undefined) {
  const files = failedFiles(first).map(({ name }) => relative(".", name));
  if (files.length <= maxFiles) console.log(files.join("\n"));
} else {
  judge(readOpenFlakes(flakesPath), first, readReport(secondPath));
}
