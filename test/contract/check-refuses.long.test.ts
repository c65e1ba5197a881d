import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { copyProject } from "./project-copy.ts";

// Each step runs a complete compiler or linter, including code generation, next to other test files.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let project: string;

beforeAll(async () => {
  project = await copyProject();
});

afterAll(async () => {
  await rm(project, { recursive: true, force: true });
});

/** Runs steps of the check in the copy. */
function check(...steps: string[]) {
  const options = { cwd: project, encoding: "utf8", timeout: 100_000 } as const;
  const { status, stderr } = spawnSync("sh", ["tools/check.sh", ...steps], options);
  return { status, said: stderr };
}

function git(...args: string[]): string {
  const person = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
  return execFileSync("git", [...person, ...args], { cwd: project, encoding: "utf8" });
}

interface Violation {
  step: string;
  file: string;
  text: string;
  complaint: string;
}

const violations: Violation[] = [
  {
    step: "types",
    file: "src/planted-count.ts",
    text: "export const count: number = [1][0];\n",
    complaint: "src/planted-count.ts(1,14): error TS2322",
  },
  {
    step: "types",
    file: "src/planted-enum.ts",
    text: "export enum Colour {\n  Red,\n}\n",
    complaint: "src/planted-enum.ts(1,13): error TS1294",
  },
  {
    step: "lint",
    file: "src/planted.ts",
    text: "export const thing: any = 1;\n",
    complaint: "src/planted.ts:1:21 lint/suspicious/noExplicitAny",
  },
  {
    step: "lint",
    file: "test/planted.ts",
    text: "export const first = ['a'].at(0)!;\n",
    complaint: "test/planted.ts:1:22 lint/style/noNonNullAssertion",
  },
  {
    step: "lint",
    file: "workers/planted.ts",
    text: "export const PLANTED_MS = 1;\n",
    complaint: "Name constants in camelCase.",
  },
  {
    step: "lint",
    file: "gateway/planted.ts",
    text: "export function planted(a: number): number {\n  if (a > 1) {\n    return 2;\n  }\n  return a;\n}\n",
    complaint: "Write a branch with one short statement on one line, without braces.",
  },
  {
    step: "lint",
    file: "gateway/planted-wide.ts",
    text: "export const   wide = 'quotes'\n",
    complaint: "gateway/planted-wide.ts format",
  },
  {
    step: "import_law",
    file: "src/platform/planted.ts",
    text: 'import "../../test/support/each-file.ts";\n',
    complaint: "nothing-imports-tests: src/platform/planted.ts -> test/support/each-file.ts",
  },
  {
    step: "names",
    file: "workers/planted-name.ts",
    text: "export interface Limiter {}\n",
    complaint:
      "Limiter: expected one definition, got src/platform/limiter.ts, workers/planted-name.ts: rename all but one",
  },
  {
    step: "names",
    file: "workers/planted/limiter.ts",
    text: "export const planted = 1;\n",
    complaint:
      "limiter.ts: expected one file, got src/platform/limiter.ts, workers/planted/limiter.ts: rename all but one",
  },
  {
    step: "names",
    file: "workers/planted-word.ts",
    text: "const stroke = 1;\nexport const planted = stroke;\n",
    complaint: "workers/planted-word.ts: stroke: expected ",
  },
  {
    step: "proto_lint",
    file: "proto/planted/v1/planted.proto",
    text: 'syntax = "proto3";\npackage planted.v1;\nmessage Planted {\n  string badName = 1;\n}\n',
    complaint: 'Field name "badName" should be lower_snake_case',
  },
  {
    step: "prose",
    file: "src/planted-prose.ts",
    text: "// Starts anew.\nexport {};\n",
    complaint: "src/planted-prose.ts:1: archaic",
  },
];

test("generated refuses generated code that was edited by hand", async () => {
  expect(check("generated")).toMatchObject({ status: 0 });
  const file = join(project, "src/gen/google/api/http_pb.ts");
  const text = await readFile(file, "utf8");
  await writeFile(file, `${text}// edited\n`);
  const { status, said } = check("generated");
  await writeFile(file, text);
  expect(said).toContain("> // edited");
  expect(status).not.toBe(0);
});

test("dead_code refuses an unused export", async () => {
  await writeFile(join(project, "tools/planted.ts"), 'import { used } from "../src/planted.ts";\nconsole.log(used);\n');
  await writeFile(join(project, "src/planted.ts"), "export const used = 1;\nexport const unused = 2;\n");
  const { status, said } = check("dead_code");
  await rm(join(project, "tools/planted.ts"));
  await rm(join(project, "src/planted.ts"));
  expect(said).toMatch(/^unused\s.*src\/planted\.ts:2/m);
  expect(said).not.toMatch(/^used\s/m);
  expect(status).not.toBe(0);
});

const steps = Map.groupBy(violations, ({ step }) => step);

test.each([...steps.keys()])("%s refuses violations of its rules", async (step) => {
  const planted = steps.get(step) ?? [];
  for (const { file, text } of planted) {
    await mkdir(dirname(join(project, file)), { recursive: true });
    await writeFile(join(project, file), text);
  }
  const { status, said } = check(step);
  for (const { file } of planted) await rm(join(project, file));
  expect(planted.map(({ complaint }) => complaint).filter((each) => !said.includes(each))).toEqual([]);
  expect(said).toContain(`check ${step} ... failed`);
  expect(status).not.toBe(0);
});

test("openapi refuses a document that differs from the digest, and prints the lines", async () => {
  expect(check("openapi")).toMatchObject({ status: 0 });
  const digest = join(project, "docs/openapi.digest");
  const text = await readFile(digest, "utf8");
  await writeFile(digest, text.replace("timeout_ms?: int32(1..120000) = 5000", "timeout_ms?: int32(1..120000) = 6000"));
  const { status, said } = check("openapi");
  await writeFile(digest, text);
  expect(said).toMatch(/^- InteractRequest: .*timeout_ms\?: int32\(1\.\.120000\) = 6000/m);
  expect(said).toMatch(/^\+ InteractRequest: .*timeout_ms\?: int32\(1\.\.120000\) = 5000/m);
  expect(said).toContain("npm run accept-contract writes it");
  expect(status).not.toBe(0);
});

test("proto_breaking refuses a field whose type has changed since the released commit", async () => {
  const proto = join(project, "proto/planted/v1/planted.proto");
  const message = (type: string) =>
    `syntax = "proto3";\npackage planted.v1;\nmessage Planted {\n  ${type} name = 1;\n}\n`;
  await mkdir(dirname(proto), { recursive: true });
  await writeFile(proto, message("string"));
  for (const command of ["init --quiet", "add proto", "commit --quiet -m release"]) git(...command.split(" "));
  spawnSync("sh", ["tools/accept-contract.sh"], { cwd: project, timeout: 60_000 });
  expect(await readFile(join(project, "proto/released-at"), "utf8")).toBe(git("rev-parse", "HEAD"));
  expect(check("proto_breaking")).toMatchObject({ status: 0 });
  await writeFile(proto, message("int32"));
  const { status, said } = check("proto_breaking");
  await rm(proto);
  expect(said).toContain('Field "1" with name "name" on message "Planted" changed type from "string" to "int32"');
  expect(status).not.toBe(0);
});

test("proto_breaking reports that the released commit is missing", async () => {
  const missing = "0123456789abcdef0123456789abcdef01234567";
  await writeFile(join(project, "proto/released-at"), `${missing}\n`);
  const { status, said } = check("proto_breaking");
  expect(said).toContain(`the commit ${missing} of proto/released-at is not in this clone`);
  expect(status).not.toBe(0);
});

test("an unknown check is refused", () => {
  expect(check("spelling")).toEqual({ status: 1, said: "pilothouse: there is no check called spelling.\n" });
});
