import type { JsonObject } from "@bufbuild/protobuf";
import { Ajv, type ErrorObject } from "ajv";

/**
 * Allowed JSON Schema keywords: with these, validation time is linear in the size of the schema and of the value.
 * `pattern`, `format`, `uniqueItems` and references are excluded, because clients could use them to make validation
 * slow.
 */
const keywords: ReadonlySet<string> = new Set([
  "type",
  "enum",
  "const",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "anyOf",
  "oneOf",
  "allOf",
  "minProperties",
  "maxProperties",
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "multipleOf",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "$schema",
  "title",
  "description",
  "default",
  "examples",
]);

/** Limits of a schema: characters of JSON, number of subschemas, nesting depth. */
const max = { characters: 16_384, schemas: 500, depth: 16 };

/** Limits of a result: characters of JSON, nesting depth. A result is part of a response and an event. */
const maxOutput = { characters: 32_768, depth: 24 };

const options = { strict: false, logger: false, validateFormats: false } as const;

/** Validates schemas only, never results. */
const schemas = new Ajv(options);

/** Returns what is wrong with a schema; undefined if it can be used. */
export function findSchemaFault(schema: JsonObject): string | undefined {
  if (JSON.stringify(schema).length > max.characters) return `is longer than ${max.characters} characters of JSON`;
  if (schema.type !== "object") return 'must be of type "object"';
  if (!isStorable(schema)) return "must not contain NUL or an unpaired surrogate";
  const fault = findKeywordFault(schema);
  if (fault !== undefined) return fault;
  if (!schemas.validateSchema(withoutDialect(schema)))
    return `is not valid JSON Schema: ${describeErrors(schemas.errors)}`;
  return undefined;
}

function findKeywordFault(schema: JsonObject): string | undefined {
  let left = max.schemas;
  const pending: { readonly schema: unknown; readonly depth: number }[] = [{ schema, depth: 1 }];
  for (let next = pending.pop(); next; next = pending.pop()) {
    const { schema: each, depth } = next;
    left -= 1;
    if (left < 0) return `has more than ${max.schemas} subschemas`;
    if (depth > max.depth) return `is nested more than ${max.depth} schemas deep`;
    if (typeof each !== "object" || each === null || Array.isArray(each)) continue;
    for (const [word, value] of Object.entries(each)) {
      if (!keywords.has(word))
        return `has the keyword ${JSON.stringify(word.slice(0, 64))}: use only ${[...keywords].join(", ")}`;
      for (const inner of innerSchemas(word, value)) pending.push({ schema: inner, depth: depth + 1 });
    }
  }
  return undefined;
}

function innerSchemas(word: string, value: unknown): unknown[] {
  if (word === "properties") return typeof value === "object" && value !== null ? Object.values(value) : [];
  if (/^(?:anyOf|oneOf|allOf)$/.test(word)) return Array.isArray(value) ? value : [];
  return word === "items" || word === "additionalProperties" ? [value] : [];
}

/** Returns what is wrong with a result; undefined if it matches the schema. */
export function findOutputFault(schema: JsonObject, output: unknown): string | undefined {
  if (typeof output !== "object" || output === null || Array.isArray(output)) return "result must be an object";
  const written = JSON.stringify(output);
  if (written.length > maxOutput.characters) return `result is longer than ${maxOutput.characters} characters`;
  if (depthOf(written) > maxOutput.depth) return `result is more than ${maxOutput.depth} levels deep`;
  if (!isStorable(output)) return "result must not contain NUL or an unpaired surrogate";
  // A separate instance: its compiled schemas are garbage-collected with it.
  const ajv = new Ajv({ ...options, meta: false, validateSchema: false });
  const validate = ajv.compile(withoutDialect(schema));
  return validate(output) ? undefined : describeErrors(validate.errors);
}

/** Removes `$schema`: the allowed keywords mean the same in every dialect, and no meta-schema is fetched. */
function withoutDialect({ $schema: _, ...schema }: JsonObject): JsonObject {
  return schema;
}

/** Describes the first five errors, each with its location. */
const describeErrors = (errors: readonly ErrorObject[] | null | undefined): string =>
  (errors ?? [])
    .slice(0, 5)
    .map(({ instancePath, message = "", params }) => {
      const { additionalProperty: name } = params;
      const more = typeof name === "string" ? `: ${JSON.stringify(name.slice(0, 64))}` : "";
      return `result${instancePath.slice(0, 200)} ${message}${more}`;
    })
    .join("; ");

/** PostgreSQL stores neither NUL nor unpaired surrogates. */
const isStorable = (json: object): boolean => !/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/.test(JSON.stringify(json));

function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[[{\]}]/g)) {
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}
