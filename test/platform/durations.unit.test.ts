import { existsSync, globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { findDurations } from "../../tools/mutate/source.ts";
import { durations } from "../support/durations.ts";

const sources = globSync("{src,gateway,workers}/**/*.ts").filter((path) => !path.startsWith("src/gen/"));

const listed = durations.map(([file, name, value, tested]) => ({ file, name, value, tested }));

const lines = (found: readonly { file: string; name: string; value: string }[]): string[] =>
  [...new Set(found.map(({ file, name, value }) => `${file} ${name} = ${value}`))].sort();

test("the table of durations lists each duration of the sources with its value", () => {
  const found = sources.flatMap((file) =>
    findDurations(readFileSync(file, "utf8")).map(({ name, value }) => ({ file, name, value })),
  );
  expect(lines(found)).toEqual(lines(listed));
});

test("the table of durations names tests that exist", () => {
  const named = listed.flatMap(({ tested }) => tested ?? []);
  const tests = named.filter((each) => each?.endsWith(".ts"));
  expect([...new Set(tests)].filter((path) => !existsSync(`test/${path}`))).toEqual([]);
});

test("the table of durations classifies only durations below a second as short", () => {
  const short = listed.filter(({ tested }) => tested === "short");
  const long = short.filter(
    ({ value }) => !(value.match(/[\d_]+/g) ?? []).every((n) => +n.replaceAll("_", "") < 1_000),
  );
  expect(lines(long)).toEqual([]);
});

test.each([
  ["const fooMs = 1_000;", ["fooMs = 1_000"]],
  ["/** é */ export const keptFor = 30 * day;", ["keptFor = 30 * day"]],
  [
    "const times = { look: { first: 50 }, whole: 2 * second } as const;",
    ["times.look.first = 50", "times.whole = 2 * second"],
  ],
  ["const failing = { forMs: hour, count: 5 };", ["failing.forMs = hour"]],
  ["const waitFor = (ms: number) => ms; const runtimes = [1];", []],
  ["function run() { const leftMs = 5; wait({ timeout: 2 * second }); }", ["leftMs = 5", "timeout = 2 * second"]],
  ["function run(seconds) { const leftMs = seconds * 1_000, otherMs = at - now; }", []],
  ["const old = sql`x < now() - interval '30 days' + n * interval '1 hour'`;", ["sql = interval '30 days'"]],
  ["const names = { setTimeouts: 1, 'session-timeout': { status: 504 }, isAfter: 3 };", []],
])("the durations of `%s` are %j", (source, expected) => {
  expect(findDurations(source).map(({ name, value }) => `${name} = ${value}`)).toEqual(expected);
});
