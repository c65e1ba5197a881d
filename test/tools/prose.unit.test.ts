import { expect, test } from "vitest";
import { type Passage, readCode, readMarkdown, readShell } from "../../tools/prose/passages.ts";
import { findPatterns, prosePatterns } from "../../tools/prose/patterns.ts";

const named = prosePatterns.map((pattern) => [pattern.name, pattern] as const);

function findNames(kind: Passage["kind"], text: string): string[] {
  return findPatterns({ kind, line: 1, text }).map(({ pattern }) => pattern);
}

test.each(named)("%s matches its first sentence but not its second one", (name, { kinds, catches, passes }) => {
  for (const kind of kinds) {
    expect(findNames(kind, catches)).toContain(name);
    expect(findNames(kind, passes)).not.toContain(name);
  }
});

test("leaves out code, addresses and quotations", () => {
  expect(findNames("comment", 'Sends `nobody` and "it is told of" to https://nobody.example/ by POST.')).toEqual([]);
});

test("names the line of a match", () => {
  expect(findPatterns({ kind: "comment", line: 7, text: "Ends the lease.\nThen nobody\nwaits." })).toEqual([
    { pattern: "nobody", line: 8, text: "Ends the lease. Then nobody waits." },
  ]);
});

test.each([
  ["joins line comments", "a(); // One.\n// Two\n// three.\n\n// Four.", ["One.", "Two\nthree.", "Four."]],
  ["splits a block at empty lines", "/**\n * One\n * two.\n *\n * Three.\n */", ["One\ntwo.", "Three."]],
  ["leaves out fenced code", "/**\n * One:\n * ```\n * code\n * ```\n */", ["One:"]],
  [
    "reads no comment in strings, templates and regular expressions",
    `f('//x'); g(\`//y\${z /* One. */}\`); h(/[/*]/)`,
    ["One."],
  ],
  ["distinguishes a division from a regular expression", "a = b / c; // One.\nd = e / f;", ["One."]],
  ["reads SQL comments", "sql`select 1\n  -- One.\n`", ["One."]],
  ["leaves out directives", "// biome-ignore lint: One.\n", []],
  ["reads messages of logs", 'log.warn({ err: f("a b") }, "failed to send");', ["failed to send"]],
  ["reads messages of errors", `new Error(\`expected \${a[0]}, got \${b(")")}\`);`, ["expected …, got …"]],
  [
    "reads details of problems",
    'fail("slug", {}, { detail: "no user has this id" }); call("no message");',
    ["no user has this id"],
  ],
])("%s", (_, source, texts) => {
  expect(readCode(source).map(({ text }) => text)).toEqual(texts);
});

test("reads comments and messages of shell scripts", () => {
  const source = "#!/bin/sh\n# One\n# two.\nstop 'no such file'\n";
  expect(readShell(source)).toEqual([
    { kind: "comment", line: 2, text: "One\ntwo." },
    { kind: "message", line: 4, text: "no such file" },
  ]);
});

test("reads paragraphs, items, headings and cells of Markdown", () => {
  const source = "# A heading\nOne\ntwo.\n- Three.\n```\ncode\n```\n| a cell | x |\n| --- | --- |\n";
  expect(readMarkdown(source).map(({ kind, line, text }) => [kind, line, text])).toEqual(
    [
      ["comment", 2, "One\ntwo."],
      ["item", 4, "Three."],
      ["label", 1, "A heading"],
      ["label", 8, "a cell"],
    ].sort(([, a], [, b]) => Number(a) - Number(b)),
  );
});
