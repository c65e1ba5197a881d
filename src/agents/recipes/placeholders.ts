import type { JsonValue } from "@bufbuild/protobuf";
import { joinPath } from "../../platform/rest-json/faults.ts";

/** A name in braces. A name ends after 64 characters, so that no text is read more than that often. */
const placeholder = /\{\{([A-Za-z_][A-Za-z0-9_]{0,63})\}\}/g;

/** The names for which a text has a place. */
export function namesIn(text: string): string[] {
  return Array.from(text.matchAll(placeholder), ([, name = ""]) => name);
}

/** Puts values in the places of their names. A name without value stays as it is. */
export function fillText(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(placeholder, (whole, name: string) => values.get(name) ?? whole);
}

/** Changes each text of a JSON value; it is told where the text stands. */
export function mapTexts(json: JsonValue, change: (text: string, path: string) => string, path = ""): JsonValue {
  if (typeof json === "string") return change(json, path);
  if (Array.isArray(json)) return json.map((item, index) => mapTexts(item, change, joinPath(path, `[${index}]`)));
  if (typeof json !== "object" || json === null) return json;
  return Object.fromEntries(
    Object.entries(json).map(([name, value]) => [name, mapTexts(value, change, joinPath(path, name))]),
  );
}
