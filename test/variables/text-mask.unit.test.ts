import { expect, test } from "vitest";
import { cutText, tidy, withoutLookahead } from "../../workers/injected/plain-text.ts";
import { TextMask } from "../../workers/variables/text-mask.ts";

const mask = (text: string, ...texts: string[]) =>
  new TextMask(texts.map((each) => ({ text: each, replacement: `{{${each.length}}}` }))).apply(text);

test.each([
  ["no part of a text without secrets", "nothing here", ["secret"], "nothing here"],
  ["all occurrences", "secret, secret", ["secret"], "{{6}}, {{6}}"],
  ["the longest of several matches", "my secrets", ["secret", "secrets"], "my {{7}}"],
  ["overlapping matches as one", "xabcdefy", ["abcd", "cdef"], "x{{4}}y"],
  ["a match within a failed match", "xabcdy", ["bcd1", "abcd", "bcd"], "x{{4}}y"],
  ["a match that restarts in the middle", "aaaab", ["aaab"], "a{{4}}"],
  ["a match truncated with a mark", "it is secr…", ["secret"], "it is {{6}}…"],
  ["a match truncated in a long text", `${"x".repeat(300)}secre`, ["secret"], `${"x".repeat(300)}{{6}}`],
  ["no prefix in a short text", "my secr", ["secret"], "my secr"],
])("masks %s", (_, text, texts, covered) => {
  expect(mask(text, ...texts)).toBe(covered);
});

test("masks a text full of near matches in linear time", () => {
  const texts = Array.from({ length: 16 }, (_, index) => `${"a".repeat(1_000 + index)}b`);
  expect(mask("a".repeat(200_000), ...texts)).toHaveLength(200_000 - 1_015 + "{{1016}}".length);
});

test("masks a secret that a cut splits, however few characters stand before the cut", () => {
  const secret = "Tr0ub4dor&3";
  const quoted = JSON.stringify(secret.replace("ub", 'u"b'));
  for (let shown = 0; shown <= secret.length; shown += 1) {
    const before = "x".repeat(40 - shown);
    const rest = shown === 0 ? "" : "{{11}}";
    expect(mask(cutText(`${before}${secret} and more`, 40), secret)).toBe(`${before}${rest}`);
    expect(mask(tidy(`${before}${secret} and more`, 40), secret)).toBe(`${before}${rest}…`);
    const text = JSON.stringify(tidy(`${before}${secret.replace("ub", 'u"b')} and more`, 40));
    expect(mask(text, quoted.slice(1, -1))).toBe(JSON.stringify(`${before}${rest.replace("11", "13")}…`));
  }
});

test.each([
  ["spaces", [..."Tr0ub4dor&3"].join(" ")],
  ["percent codes", Buffer.from("Tr0ub4dor&3").toString("hex").replace(/../g, "%$&")],
  ["HTML codes", [..."Tr0ub4dor&3"].map((each) => `&#x${each.charCodeAt(0).toString(16)};`).join("")],
])("masks a secret with %s that a cut splits", (_, secret) => {
  const bare = new TextMask([], [{ text: "tr0ub4dor&3", replacement: "{{key}}" }]);
  for (let shown = 1; shown < secret.length; shown += 1) {
    const before = "x".repeat(100 - shown);
    const masked = bare.apply(cutText(`${before}${secret} and more`, 100));
    expect(masked.replaceAll(" ", "")).toBe(`${before}{{key}}`);
  }
});

test("a text that is cut twice keeps the lookahead of the second cut", () => {
  const inner = tidy("abcdefghij".repeat(20), 100);
  expect(withoutLookahead(tidy(inner, 100))).toBe(`${"abcdefghij".repeat(10)}…`);
  expect(mask(tidy(`-${tidy(`${"x".repeat(98)}secret and`, 100)}`, 100), "secret")).toBe(`-${"x".repeat(98)}{{6}}…`);
  expect(withoutLookahead(tidy(tidy("abcdefghij", 4), 8))).toBe("abcd…");
  expect(withoutLookahead(cutText("a\ufdd0b\ufdd0c\ufdd1d\ufdd1", 10))).toBe("ab");
  expect(withoutLookahead(cutText("ab😀cd", 3))).toBe("ab");
});
