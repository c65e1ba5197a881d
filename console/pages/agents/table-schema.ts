import type { JsonObject } from "@bufbuild/protobuf";

/** Returns the part of a message that asks for a table with columns given as `name, price`; without columns, none. */
export function tableOf(columns: string | undefined): { readonly outputSchema?: JsonObject } {
  const names =
    columns
      ?.split(",")
      .map((name) => name.trim())
      .filter(Boolean) ?? [];
  if (names.length === 0) return {};
  const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
  const row = { type: "object", properties, required: names };
  return {
    outputSchema: { type: "object", properties: { rows: { type: "array", items: row } }, required: ["rows"] },
  };
}
