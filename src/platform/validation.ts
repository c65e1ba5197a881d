import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { type FieldFault, fail, failFaults } from "./errors.ts";

// Every pattern that it runs is one that we wrote in a proto, so the platform's own RegExp is safe, and twice as fast.
const validator = createValidator({ regexMatch: (pattern, against) => new RegExp(pattern, "u").test(against) });

/** Checks a message against the buf.validate rules of its proto. Throws `validation-failed` with all faults. */
export function validate(desc: DescMessage, message: Message): void {
  const result = validator.validate(desc, message);
  if (result.kind === "invalid") {
    throw failFaults("validation-failed", result.violations.map(toFault));
  }
  if (result.kind === "error") {
    throw fail("internal", {}, { cause: result.error });
  }
}

/** Validates an empty message once: the first validation of a type compiles its rules, 0.4 to 80 ms. */
export function warmUp(desc: DescMessage): void {
  validator.validate(desc, create(desc));
}

// How the rules say of an absent value that it is too short, or not one of those allowed.
const MISSING = new Set([
  "must be at least 1 characters",
  "exactly one field is required in oneof",
  "value is required",
  "must not be in list [0]",
]);

function toFault(violation: Violation): FieldFault {
  const message = MISSING.has(violation.message) ? "is required" : violation.message || `violates ${violation.ruleId}`;
  return { field: jsonPath(violation.field), message };
}

/** Writes a path as the REST JSON has it: a oneof's member stands under the name of the oneof. */
function jsonPath(path: Path): string {
  let text = "";
  for (const element of path) {
    switch (element.kind) {
      case "field":
        text += `${text && "."}${element.oneof?.name ?? element.name}`;
        break;
      case "oneof":
        text += `${text && "."}${element.name}`;
        break;
      case "list_sub":
        text += `[${element.index}]`;
        break;
      case "map_sub":
        text += `.${String(element.key)}`;
        break;
      default:
        break;
    }
  }
  return text;
}
