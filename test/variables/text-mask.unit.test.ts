import { expect, test } from "vitest";
import { TextMask } from "../../workers/variables/text-mask.ts";

const mask = (text: string, ...texts: string[]) =>
  new TextMask(texts.map((each) => ({ text: each, shown: `{{${each.length}}}` }))).apply(text);

test.each([
  ["what is not there", "nothing here", ["secret"], "nothing here"],
  ["all that is there", "secret, secret", ["secret"], "{{6}}, {{6}}"],
  ["the longest of several", "my secrets", ["secret", "secrets"], "my {{7}}"],
  ["one that begins in another", "xabcdefy", ["abcd", "cdef"], "x{{4}}y"],
  ["one that ends another", "xabcdy", ["bcd1", "abcd", "bcd"], "x{{4}}y"],
  ["what begins again in the middle", "aaaab", ["aaab"], "a{{4}}"],
  ["what was cut off with a sign", "it is secr…", ["secret"], "it is {{6}}…"],
  ["what was cut off in a long text", `${"x".repeat(300)}secre`, ["secret"], `${"x".repeat(300)}{{6}}`],
  ["no word that it begins with", "my secr", ["secret"], "my secr"],
])("covers %s", (_, text, texts, covered) => {
  expect(mask(text, ...texts)).toBe(covered);
});

test("a text and covers that agree nearly everywhere are gone through in one go", () => {
  const texts = Array.from({ length: 16 }, (_, index) => `${"a".repeat(1_000 + index)}b`);
  expect(mask("a".repeat(200_000), ...texts)).toHaveLength(200_000 - 1_015 + "{{1016}}".length);
});
