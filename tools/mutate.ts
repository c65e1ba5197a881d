// npm run mutate: changes a copy of the checkout in small steps, and prints the changes that no test detects.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { StartRefused } from "../src/platform/start-refused.ts";
import { type Mutant, makeMutants } from "./mutate/mutants.ts";
import { print, runCommand } from "./run-command.ts";

const help = `npm run mutate -- [options] [group or file ...]

  --kinds where,and,if,duration   creates only mutants of these kinds
  --lines 120-180                 creates only mutants of these lines, such as the lines of a change
  --tests test/a,test/b           runs these tests instead of those in targets.json
  --deadline 120                  seconds for the tests of a mutant (default: three times their normal duration)

Groups and files are those of tools/mutate/targets.json, which names the tests of each file; without tests, those that
import the file. A mutant whose tests fail, or miss the deadline, is killed. Exits with 1 when one survives.`;

type Targets = Readonly<Record<string, readonly string[]>>;

interface Survivor {
  readonly file: string;
  readonly mutant: Mutant;
}

/** Reads the files to mutate and their tests. If given, `tests` replaces the tests of all files. */
function readTargets(named: readonly string[], tests?: readonly string[]): Targets {
  const path = new URL("./mutate/targets.json", import.meta.url);
  const groups: Readonly<Record<string, Targets>> = JSON.parse(readFileSync(path, "utf8"));
  const all: Targets = Object.assign({}, ...Object.values(groups));
  const chosen: Targets =
    named.length === 0 ? all : Object.assign({}, ...named.map((name) => groups[name] ?? { [name]: all[name] ?? [] }));
  return tests ? Object.fromEntries(Object.keys(chosen).map((file) => [file, tests])) : chosen;
}

/** Copies tracked and untracked files and the generated code. Links the packages. */
function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), "pilothouse-mutate-"));
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { encoding: "utf8" });
  for (const file of [...files.trimEnd().split("\n"), "src/gen"]) {
    cpSync(file, join(copy, file), { recursive: true });
  }
  symlinkSync(resolve("node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Ends a process and its descendants. */
async function endGroup(child: ChildProcess): Promise<void> {
  const kill = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // The process has ended.
    }
  };
  kill("SIGTERM");
  const timer = setTimeout(kill, 5_000, "SIGKILL");
  if (child.exitCode === null) await once(child, "exit");
  clearTimeout(timer);
  kill("SIGKILL");
}

type Verdict = "passed" | "failed" | "late";

interface TestRun {
  readonly copy: string;
  readonly file: string;
  readonly tests: readonly string[];
  readonly deadline: number;
  readonly signal: AbortSignal;
}

/** Runs the tests of a file in the copy until the first failure. */
async function runTests({ copy, file, tests, deadline, signal }: TestRun): Promise<Verdict> {
  const which = tests.length > 0 ? ["run", ...tests] : ["related", "--run", file];
  const late = AbortSignal.timeout(deadline);
  const child = spawn("vitest", [...which, "--bail=1", "--reporter=dot"], {
    cwd: copy,
    detached: true,
    stdio: "ignore",
  });
  const ended = once(child, "exit");
  const aborted = once(AbortSignal.any([late, signal]), "abort");
  await Promise.race([ended, aborted]);
  await endGroup(child);
  signal.throwIfAborted();
  if (late.aborted) return "late";
  return child.exitCode === 0 ? "passed" : "failed";
}

const secondsSince = (begin: number): string => `${((performance.now() - begin) / 1_000).toFixed(1)} s`;

/** Normal durations in milliseconds, by tests. */
const durations = new Map<string, number>();

/** Runs tests without a mutant once, and returns their duration in milliseconds. */
async function measureTests(run: TestRun): Promise<number> {
  const key = run.tests.join() || run.file;
  const begin = performance.now();
  if (!durations.has(key) && (await runTests(run)) !== "passed")
    throw new StartRefused(`the tests of ${run.file} fail without a mutant`);
  const duration = durations.get(key) ?? performance.now() - begin;
  durations.set(key, duration);
  return duration;
}

/** Tests the mutants of a file, and returns the survivors. */
async function mutateFile(run: Omit<TestRun, "deadline">, wanted: (mutant: Mutant) => boolean, given?: number) {
  const { copy, file } = run;
  const path = join(copy, file);
  const original = readFileSync(path, "utf8");
  const mutants = makeMutants(original).filter(wanted);
  const duration = await measureTests({ ...run, deadline: given ?? 1_200_000 });
  const deadline = given ?? Math.ceil(3 * duration) + 20_000;
  print(`${file}: ${mutants.length} mutants, ${(duration / 1_000).toFixed(1)} s without one`);
  const survivors: Survivor[] = [];
  for (const mutant of mutants) {
    const begun = performance.now();
    writeFileSync(path, mutant.source);
    const verdict = await runTests({ ...run, deadline }).finally(() => writeFileSync(path, original));
    if (verdict === "passed") survivors.push({ file, mutant });
    const word = { passed: "SURVIVED", failed: "killed", late: "killed (late)" }[verdict];
    print(`  ${word} ${secondsSince(begun)} ${file}:${mutant.line} ${mutant.change}`);
  }
  return { survivors, tried: mutants.length };
}

function readOptions() {
  const text = { type: "string" } as const;
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { kinds: text, lines: text, tests: text, deadline: text, help: { type: "boolean" } },
  });
  const kinds = values.kinds?.split(",");
  const [first = 1, last = first] = (values.lines ?? `1-${Number.MAX_SAFE_INTEGER}`).split("-").map(Number);
  const wanted = ({ kind, line }: Mutant) => (kinds?.includes(kind) ?? true) && line >= first && line <= last;
  const deadline = values.deadline === undefined ? undefined : Number(values.deadline) * 1_000;
  return {
    wanted,
    deadline,
    targets: readTargets(positionals, values.tests?.split(",")),
    isHelp: values.help ?? false,
  };
}

await runCommand(async (signal) => {
  const { wanted, deadline, targets, isHelp } = readOptions();
  if (isHelp) return print(help);
  const copy = copyCheckout();
  const survivors: Survivor[] = [];
  let tried = 0;
  try {
    for (const [file, tests] of Object.entries(targets)) {
      const result = await mutateFile({ copy, file, tests, signal }, wanted, deadline);
      survivors.push(...result.survivors);
      tried += result.tried;
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
    print(`${tried} mutants, ${survivors.length} survived`);
    for (const { file, mutant } of survivors) print(`  ${file}:${mutant.line} ${mutant.change}`);
  }
  if (survivors.length > 0) process.exitCode = 1;
});
