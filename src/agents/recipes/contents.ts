import type { JsonValue } from "@bufbuild/protobuf";
import { type CreateRecipeRequest, CreateRecipeRequestSchema } from "../../gen/pilothouse/v1/recipe_pb.ts";
import type { FieldFault } from "../../platform/errors.ts";
import { fileNameFault } from "../../platform/file-name.ts";
import { domainFaults } from "../../platform/outgoing/domain-list.ts";
import { compileWriter } from "../../platform/rest-json/writer.ts";
import { addressFault } from "../../sessions/commands/page-address.ts";
import { mapTexts, namesIn } from "./placeholders.ts";

/** Executable part of a recipe. */
type RecipeContents = Pick<CreateRecipeRequest, "steps" | "startUrl">;

const write = compileWriter(CreateRecipeRequestSchema);

/** Returns the fields that may contain placeholders as JSON with the field names of the API, as used in faults. */
export function writeContents(request: CreateRecipeRequest): JsonValue {
  const { start_url = null, steps = [] } = write(request);
  return { ...(start_url !== null && { start_url }), steps };
}

/** Returns the faults of URLs and file names. Unless `isFilled`, texts with placeholders are not checked. */
export function findTextFaults({ startUrl, steps }: RecipeContents, isFilled = false): FieldFault[] {
  const words = steps.flatMap(({ do: { case: kind, value } }, index) => {
    const at = `steps[${index}].do`;
    if (kind === "navigate") return { field: `${at}.url`, text: value.url, faultOf: addressFault };
    if (kind === "capture") return { field: `${at}.file_name`, text: value.fileName, faultOf: fileNameFault };
    return [];
  });
  if (startUrl !== undefined) words.unshift({ field: "start_url", text: startUrl, faultOf: addressFault });
  return words.flatMap(({ field, text, faultOf }) => {
    const message = !isFilled && namesIn(text).length > 0 ? undefined : faultOf(text);
    return message === undefined ? [] : { field, message };
  });
}

/** Returns the faults that the proto rules of the fields cannot express. */
export function findFaults(request: CreateRecipeRequest): FieldFault[] {
  const names = request.parameters.map(({ name }) => name);
  const faults: FieldFault[] = names.flatMap((name, index) =>
    names.indexOf(name) < index
      ? { field: `parameters[${index}].name`, message: "is the name of another parameter" }
      : [],
  );
  mapTexts(writeContents(request), (text, field) => {
    const unknown = namesIn(text).find((name) => !names.includes(name));
    if (unknown !== undefined)
      faults.push({ field, message: `has a placeholder for ${unknown}, which is not a parameter` });
    if (field.endsWith(".ref")) faults.push({ field, message: "is valid for one observation only: use a selector" });
    return text;
  });
  return [...faults, ...findTextFaults(request), ...domainFaults(request.allowedDomains)];
}
