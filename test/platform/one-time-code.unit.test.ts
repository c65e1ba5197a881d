import { expect, test } from "vitest";
import { oneTimeCode } from "../../src/platform/one-time-code.ts";

/** "12345678901234567890" in base 32, the seed of RFC 6238, appendix B. */
const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

test.each([
  [59, "94287082"],
  [1_111_111_109, "07081804"],
  [1_234_567_890, "89005924"],
  [20_000_000_000, "65353130"],
])("the code of RFC 6238 at %i s is %s", (seconds, code) => {
  expect(oneTimeCode(`otpauth://totp/a?secret=${seed}&digits=8`, seconds * 1_000)).toBe(code);
  const spaced = ` ${seed.toLowerCase().replace(/(.{4})/g, "$1 ")}`;
  expect(oneTimeCode(spaced, seconds * 1_000)).toBe(code.slice(2));
});

test.each([
  "",
  "hunter2!",
  "otpauth://hotp/a?secret=GEZDGNBVGY3TQOJQ&counter=1",
  `otpauth://totp/a?secret=${seed}&digits=99`,
])("%j is rejected as a seed", (text) => {
  expect(oneTimeCode(text, 0)).toBeUndefined();
});
