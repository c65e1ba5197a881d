import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SecretVariableSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { cutText } from "../../workers/injected/plain-text.ts";
import { VariableStore } from "../../workers/variables/variable-store.ts";

const value = "Tr0ub4dor&3-Zürich";

function mask(text: string, field = "text", secret = value): string {
  const store = new VariableStore();
  store.add([create(SecretVariableSchema, { name: "key", value: secret })]);
  return (store.mask({ [field]: text }) as Record<string, string>)[field] ?? "";
}

const base64 = (before: string): string => Buffer.from(`${before}${value}, and more`).toString("base64");
const entities = [...value].map((each) => `&#${each.codePointAt(0)};`).join("");
const codes = [...value].map((each) => `\\u${(each.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`).join("");

test.each([
  ["as it is", value],
  ["in another case", value.toUpperCase()],
  ["with spaces", [...value].join(" ")],
  ["with line breaks", value.replace("-", "-\n\n")],
  ["with zero-width characters", [...value].join("\u200b")],
  ["with soft hyphens", value.replace("4", "4\u00ad")],
  ["with tags", value.replace("dor", "<b class='x'>dor</b>")],
  ["with Markdown", value.replace("dor", "**dor**")],
  ["reversed", [...value].reverse().join("")],
  ["reversed, with spaces", [...value].reverse().join(" ")],
  ["percent-encoded", encodeURIComponent(value)],
  ["percent-encoded throughout", Buffer.from(value).toString("hex").replace(/../g, "%$&")],
  ["HTML-encoded", value.replace("&", "&amp;")],
  ["HTML-encoded throughout", entities],
  ["as codes", codes],
  ["hexadecimal", Buffer.from(value).toString("hex")],
  ["hexadecimal in capitals", Buffer.from(value).toString("hex").toUpperCase()],
  ["base64, position 0", base64("")],
  ["base64, position 1", base64("a")],
  ["base64, position 2", base64("ab")],
  ["base64, in lines", base64("").replace(/.{10}/g, "$&\n")],
  ["base64url", Buffer.from(value).toString("base64url")],
])("masks a value %s", (_, text) => {
  const masked = mask(`It is ${text} and more`);
  expect(masked).toMatch(/^It is .*\{\{key\}\}/);
  // Of base64, the ends that also depend on other characters stay.
  for (let at = 0; at + 10 <= text.length; at += 1) {
    const piece = text.slice(at, at + 10);
    if (/^[\w&%#;\\+/=-]+$/.test(piece) && !isOfNeighbours(piece)) expect(masked).not.toContain(piece);
  }
});

const neighbours = ["", "a", "ab"].map(base64).map((each) => each.slice(-24));
const isOfNeighbours = (piece: string): boolean => neighbours.some((each) => each.includes(piece));

test("masks a value that a page splits into several elements, and leaves the lines of the snapshot", () => {
  const snapshot = [
    '- heading "Key"',
    '- text "Tr0ub4"',
    '  - link "dor&3" ref=s1e2',
    '- text "-Zürich"',
    '- text "x"',
  ];
  expect(mask(snapshot.join("\n"), "snapshot").split("\n")).toEqual([
    '- heading "Key"',
    '- text "{{key}}"',
    '  - link "" ref=s1e2',
    '- text ""',
    '- text "x"',
  ]);
});

test("masks short values only as they are, and leaves ordinary text", () => {
  expect(mask("1 9 . 9 9 and 99.91 and 19.99", "text", "19.99")).toBe("1 9 . 9 9 and 99.91 and {{key}}");
  const ordinary = 'Tr0ub and <b>4dor</b>, "Zürich" 100 % of %41 &amp; more';
  expect(mask(ordinary)).toBe(ordinary);
});

test("removes the lookahead of cut texts from messages and failures without secrets", () => {
  const store = new VariableStore();
  expect(store.mask({ title: cutText("abcdef", 3), id: 1 })).toEqual({ title: "abc", id: 1 });
  expect(store.maskFailure(fail("conflict", {}, { detail: cutText("abcdef", 3) }))).toMatchObject({ detail: "abc" });
});

test("masks long texts in linear time", () => {
  const text = `${"<a".repeat(50_000)}${"%41".repeat(50_000)}${"Tr0ub4dor&3-".repeat(10_000)}.`;
  const begunAt = performance.now();
  expect(mask(text) === text).toBe(true);
  expect(performance.now() - begunAt).toBeLessThan(5_000);
});
