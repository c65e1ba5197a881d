import { describe, test } from "vitest";
import { urlGlob } from "../../workers/driver/actions/url-glob.ts";
import { expectLinear } from "../support/growth.ts";
import { expectLinearInText, expectLinearRequest, requestInputs, textReaders } from "../support/linear-inputs.ts";
import { oneOfEach } from "../support/one-of-each.ts";

test.each(Object.entries(textReaders))("%s is read in time linear in its length", (_name, read) => {
  expectLinearInText(read);
});

test("a pattern and an address are matched in time linear in their lengths", () => {
  const glob = (length: number) => urlGlob(`${"**a".repeat(length / 4)}**b`);
  const address = "a".repeat(4_096);
  expectLinear((matches: (address: string) => boolean) => matches(address), glob, 2_048);
});

describe("a request is read and checked in time linear in its length", () => {
  // One field of each kind. linear-time.long.test.ts covers every field.
  test.each(oneOfEach(requestInputs, ({ kind }) => kind))("$name", expectLinearRequest);
});
