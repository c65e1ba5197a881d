import type { JsonObject } from "@bufbuild/protobuf";
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { type FieldFault, failFaults } from "../../src/platform/errors.ts";
import { suggestion } from "../../src/platform/rest-json/suggestion.ts";
import type { Tool } from "./tool.ts";

/** Returns the JSON Schema of a tool's arguments. */
export const inputSchema = ({ input: properties, required }: Tool) =>
  ({ type: "object", properties, required, additionalProperties: false }) as const;

const ajv = new Ajv({ strict: false, logger: false, allErrors: true });
const validators = new WeakMap<Tool, ValidateFunction>();

/** Throws `validation-failed` if arguments do not match the schema of a tool. */
export function validateArguments(tool: Tool, args: JsonObject): void {
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
