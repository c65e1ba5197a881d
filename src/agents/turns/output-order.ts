import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns a value with the keys of its objects in the order of the schema's properties. Other keys follow. */
function inOrderOf(schema: JsonValue | undefined, value: JsonValue): JsonValue {
  if (!isObject(schema)) return value;
  if (Array.isArray(value)) return value.map((item) => inOrderOf(schema.items, item));
  return isObject(value) ? inSchemaOrder(schema, value) : value;
}

/** Orders the keys of a result by its schema, because the database does not keep their order. */
export function inSchemaOrder({ properties }: JsonObject, output: JsonObject): JsonObject {
  const known = isObject(properties) ? properties : {};
  const keys = new Set([...Object.keys(known), ...Object.keys(output)]);
  const ordered = [...keys].flatMap((key) => {
    const value = output[key];
    return value === undefined ? [] : [[key, inOrderOf(known[key], value)] as const];
  });
  return Object.fromEntries(ordered);
}
