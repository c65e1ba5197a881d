import { expect, test } from "vitest";
import { TextMask } from "../../workers/variables/text-mask.ts";

const mask = (text: string, ...texts: string[]) =>
  new TextMask(texts.map((each) => ({ text: each, shown: `{{${each.length}}}` }))).apply(text);

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
