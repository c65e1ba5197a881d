import type { DescMessage } from "@bufbuild/protobuf";
import { Failure, fail } from "../../src/platform/errors.ts";

/**
 * Makes what reads an application/x-www-form-urlencoded body as the JSON object that it stands for. As RFC 6749, 3.2, has
 * it, a field that is not known is ignored, one without a value counts as left out, and one that comes twice is refused.
 */
export function formParser(desc: DescMessage): (body: Buffer) => unknown {
  const names = new Set(desc.fields.map(({ name }) => name));
  return (body) => {
    const fields = new Map<string, string>();
    for (const [name, value] of new URLSearchParams(body.toString("utf8"))) {
      if (fields.has(name))
        throw fail("bad-request", { error: "invalid_request" }, { detail: `the field ${name} comes twice` });
      if (names.has(name) && value !== "") fields.set(name, value);
    }
    return Object.fromEntries(fields);
  };
}

/** What is wrong with a form itself is `bad-request` with the code `invalid_request` (RFC 6749, 5.2). */
export function asFormFailure(thrown: unknown): unknown {
  if (!(thrown instanceof Failure) || thrown.extensions.error !== undefined) return thrown;
  if (thrown.slug !== "bad-request" && thrown.slug !== "validation-failed") return thrown;
  const { errors, message: detail } = thrown;
  return fail("bad-request", { error: "invalid_request" }, { errors, detail });
}
