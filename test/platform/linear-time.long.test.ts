import { describe, test } from "vitest";
import { expectLinearRequest, requestInputs } from "../support/linear-inputs.ts";

describe("a request is read and checked in time linear in its length", () => {
  test.each(requestInputs)("$name", expectLinearRequest);
});
