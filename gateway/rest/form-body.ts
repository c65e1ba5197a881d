import type { DescMessage } from "@bufbuild/protobuf";
import { Failure, fail } from "../../src/platform/errors.ts";

/**
 * Creates a parser that converts an application/x-www-form-urlencoded body to a JSON object. According to RFC 6749,
 * 3.2, unknown fields are ignored, empty fields count as omitted, and repeated fields are refused.
 */
export function formParser(desc: DescMessage): (body: Buffer) => unknown {
  const names = new Set(desc.fields.map(({ name }) => name));
  return (body) => {
    const fields = new Map<string, string>();
    for (const [name, value] of new URLSearchParams(body.toString("utf8"))) {
      if (fields.has(name))
        throw fail("bad-request", { error: "invalid_request" }, { detail: `the field ${name} must appear only once` });
      if (names.has(name) && value !== "") fields.set(name, value);
    }
    return Object.fromEntries(fields);
  };
}

/** Converts a fault of a form to `bad-request` with the code `invalid_request` (RFC 6749, 5.2). */
export function asFormFailure(thrown: unknown): unknown {
  if (!(thrown instanceof Failure) || thrown.extensions.error !== undefined) return thrown;
  if (thrown.slug !== "bad-request" && thrown.slug !== "validation-failed") return thrown;
  const { errors, message: detail } = thrown;
  return fail("bad-request", { error: "invalid_request" }, { errors, detail });
}
