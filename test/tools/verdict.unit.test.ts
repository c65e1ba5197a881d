import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pilothouse-verdict-"));
});
afterAll(() => rm(directory, { recursive: true }));

/** A report of one passed test, and of files with a passed or failed test. */
function reportOf(files: Readonly<Record<string, "passed" | "failed">>, success = false): object {
  const testResults = Object.entries(files).map(([file, status]) => {
    return { name: resolve(file), status, assertionResults: [{ fullName: `${file} works`, status }] };
  });
  return { numPassedTests: 1, success, testResults };
}

const failed = reportOf({ "test/a.test.ts": "failed" });
const passed = reportOf({ "test/a.test.ts": "passed" }, true);
const openFlake = { file: "test/a.test.ts", test: "works", date: "2026-01-01" };

/** Runs the tool, and returns its last line and its exit status. */
async function judge(first: object, second?: object, flakes: readonly object[] = []): Promise<[string, number]> {
  const paths = ["flakes", "first", "second"].map((name) => join(directory, `${name}.json`));
  const contents = [flakes.map((flake) => JSON.stringify(flake)).join("\n"), JSON.stringify(first)];
  if (second) contents.push(JSON.stringify(second));
  const given = paths.slice(0, contents.length);
  await Promise.all(given.map((path, index) => writeFile(path, contents[index] ?? "")));
  return new Promise((done) => {
    execFile(process.execPath, ["tools/testing/verdict.ts", ...given], (error, stdout) => {
      done([stdout.trim().split("\n").at(-1) ?? "", error ? Number(error.code) : 0]);
    });
  });
}

test("names the failed files unless too many failed", async () => {
  const files = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}.ts`, "failed"]));
  expect(await judge(failed)).toEqual(["test/a.test.ts", 0]);
  expect(await judge(reportOf(files(11) as Record<string, "failed">))).toEqual(["", 0]);
});

test.for([
  ["a green run", passed, {}, [], "1 passed, 0 failed, 0 flaked", 0],
  ["a file that failed twice", failed, failed, [], "1 passed, 1 failed, 0 flaked", 1],
  ["a file that failed once", failed, passed, [], "2 passed, 0 failed, 1 flaked", 0],
  ["a flake next to three open ones", failed, passed, Array(3).fill(openFlake), "2 passed, 0 failed, 1 flaked", 0],
  ["a flake next to four open ones", failed, passed, Array(4).fill(openFlake), "2 passed, 1 failed, 1 flaked", 1],
  ["closed flakes", failed, passed, Array(4).fill({ ...openFlake, closed: "x" }), "2 passed, 0 failed, 1 flaked", 0],
  ["an error outside of tests", reportOf({}), {}, [], "1 passed, 1 failed, 0 flaked", 1],
  ["a run without a report", {}, {}, [], "0 passed, 1 failed, 0 flaked", 1],
] as const)("judges %s", async ([, first, second, flakes, line, status]) => {
  expect(await judge(first, second, flakes)).toEqual([line, status]);
});
