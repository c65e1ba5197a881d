import type { JsonValue } from "@bufbuild/protobuf";
import { joinPath } from "../../platform/rest-json/faults.ts";

/** A name of at most 64 characters in double braces. The limit bounds backtracking. */
const placeholder = /\{\{([A-Za-z_][A-Za-z0-9_]{0,63})\}\}/g;

/** Returns the placeholder names in a text, with duplicates. */
export function namesIn(text: string): string[] {
  return Array.from(text.matchAll(placeholder), ([, name = ""]) => name);
}

/** Replaces placeholders with their values. Placeholders without a value stay unchanged. */
export function fillText(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(placeholder, (whole, name: string) => values.get(name) ?? whole);
}

/** Replaces every string of a JSON value with the result of `change`, which receives the string and its path. */
export function mapTexts(json: JsonValue, change: (text: string, path: string) => string, path = ""): JsonValue {
  if (typeof json === "string") return change(json, path);
  if (Array.isArray(json)) return json.map((item, index) => mapTexts(item, change, joinPath(path, `[${index}]`)));
  if (typeof json !== "object" || json === null) return json;
  return Object.fromEntries(
    Object.entries(json).map(([name, value]) => [name, mapTexts(value, change, joinPath(path, name))]),
  );
}
