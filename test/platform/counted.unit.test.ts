import { expect, test } from "vitest";
import { counted } from "../../src/platform/counted.ts";

test.each([
  [0, "session", "0 sessions"],
  [1, "session", "1 session"],
  [2, "session minute", "2 session minutes"],
  [1n, "byte", "1 byte"],
  [1n << 60n, "byte", "1152921504606846976 bytes"],
  [1, "entry", "1 entry"],
  [3, "entry", "3 entries"],
])("a text counts %s of %s as %s", (count, noun, text) => {
  expect(counted(count, noun)).toBe(text);
});
