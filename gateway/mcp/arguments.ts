import type { JsonObject } from "@bufbuild/protobuf";
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { type FieldFault, failFaults } from "../../src/platform/errors.ts";
import { textFault } from "../../src/platform/rest-json/reader.ts";
import { suggestion } from "../../src/platform/rest-json/suggestion.ts";
import type { Tool } from "./tool.ts";

/** Returns the JSON Schema of a tool's arguments. */
export const inputSchema = ({ input: properties, required }: Tool) =>
  ({ type: "object", properties, required, additionalProperties: false }) as const;

const ajv = new Ajv({ strict: false, logger: false, allErrors: true });
const validators = new WeakMap<Tool, ValidateFunction>();

/** Maximum nesting of the arguments of a call. */
const deepest = 64;

/**
 * Returns the first fault in the contents of arguments, if any: a text or name that cannot be stored, or too deep
 * nesting.
 */
function findContentFault(args: JsonObject): FieldFault | undefined {
  // A loop instead of recursion, because the nesting of arguments is not yet limited.
  const found: { field: string; value: unknown; depth: number }[] = [{ field: "", value: args, depth: 0 }];
  for (const { field, value, depth } of found) {
    const message = typeof value === "string" ? textFault(value) : undefined;
    if (message !== undefined) return { field, message };
    if (typeof value !== "object" || value === null) continue;
    if (depth > deepest) return { field, message: `must have at most ${deepest} levels` };
    for (const [name, inner] of Object.entries(value)) {
      const position = { field: depth === 0 ? name : field, depth: depth + 1 };
      found.push({ ...position, value: inner }, { ...position, value: name });
    }
  }
  return undefined;
}

/** Throws `validation-failed` if arguments violate a tool's schema, cannot be stored, or are nested too deeply. */
export function validateArguments(tool: Tool, args: JsonObject): void {
  const fault = findContentFault(args);
  if (fault) throw failFaults("validation-failed", [fault]);
  let validate = validators.get(tool);
  if (!validate) {
    validate = ajv.compile(inputSchema(tool));
    validators.set(tool, validate);
  }
  if (!validate(args))
    throw failFaults(
      "validation-failed",
      (validate.errors ?? []).map((error) => toFault(tool, error)),
    );
}

function toFault(tool: Tool, { keyword, instancePath, params, message = "is not valid" }: ErrorObject): FieldFault {
  const path = instancePath
    .slice(1)
    .replace(/\/(\d+)/g, "[$1]")
    .replaceAll("/", ".");
  const within = (name: string) => (path === "" ? name : `${path}.${name}`);
  switch (keyword) {
    case "required":
      return { field: within(params.missingProperty), message: "is required" };
    case "additionalProperties": {
      const known = path === "" ? Object.keys(tool.input) : [];
      const name = String(params.additionalProperty).slice(0, 100);
      return { field: within(name), message: `is not known${suggestion(name, known)}` };
    }
    case "enum":
      return { field: path, message: `must be one of ${params.allowedValues.join(", ")}` };
    default:
      return { field: path, message };
  }
}
