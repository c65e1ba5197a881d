import { isMessage } from "@bufbuild/protobuf";
import { isReflectList, isReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { type FieldRules, FieldRulesSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { JsonSchema } from "./model.ts";

type Keywords = (value: unknown) => JsonSchema;

const anyRule: Keywords = () => ({});

const number = {
  const: (value) => ({ const: Number(value) }),
  gt: (value) => ({ exclusiveMinimum: Number(value) }),
  gte: (value) => ({ minimum: Number(value) }),
  lt: (value) => ({ exclusiveMaximum: Number(value) }),
  lte: (value) => ({ maximum: Number(value) }),
  in: (value) => ({ enum: items(value).map(Number) }),
} satisfies Record<string, Keywords>;

/** JSON Schema keywords for each buf.validate rule that our protos use, by field type. */
const keywords: Readonly<Record<string, Readonly<Record<string, Keywords>>>> = {
  string: {
    const: (value) => ({ const: String(value) }),
    len: (value) => ({ minLength: Number(value), maxLength: Number(value) }),
    min_len: (value) => ({ minLength: Number(value) }),
    max_len: (value) => ({ maxLength: Number(value) }),
    pattern: (value) => ({ pattern: String(value) }),
    in: (value) => ({ enum: items(value).map(String) }),
    not_in: (value) => ({ not: { enum: items(value).map(String) } }),
    email: () => ({ format: "email" }),
    hostname: () => ({ format: "hostname" }),
    uri: () => ({ format: "uri" }),
    uuid: () => ({ format: "uuid" }),
  },
  bytes: {
    // Lengths are in bytes; JSON has four base64 characters for every three bytes.
    min_len: (value) => ({ minLength: Math.ceil((Number(value) * 4) / 3) }),
    max_len: (value) => ({ maxLength: Math.ceil(Number(value) / 3) * 4 }),
  },
  double: number,
  float: number,
  int32: number,
  uint32: number,
  int64: number,
  uint64: number,
  // The schema of an enum lists its names, without the zero value.
  enum: { defined_only: anyRule, not_in: anyRule },
  repeated: {
    min_items: (value) => ({ minItems: Number(value) }),
    max_items: (value) => ({ maxItems: Number(value) }),
    unique: (value) => ({ uniqueItems: value === true }),
    items: (value) => ({ items: nested(value) }),
  },
  map: {
    min_pairs: (value) => ({ minProperties: Number(value) }),
    max_pairs: (value) => ({ maxProperties: Number(value) }),
    keys: (value) => ({ propertyNames: nested(value) }),
    values: (value) => ({ additionalProperties: nested(value) }),
  },
};

/** Converts the buf.validate rules of a field's type to JSON Schema. Throws for a rule without a translation. */
export function constraintsOf(rules: FieldRules): JsonSchema {
  if (rules.type.case === undefined) return {};
  const type = FieldRulesSchema.fields.find((field) => field.localName === rules.type.case);
  const table = keywords[type?.name ?? ""];
  if (!type?.message || !table) throw new Error(`buf.validate.${rules.type.case} has no translation to JSON Schema`);
  const view = reflect(type.message, rules.type.value);
  let schema: JsonSchema = {};
  for (const field of view.fields.filter((candidate) => view.isSet(candidate))) {
    const translate = table[field.name];
    if (!translate) throw new Error(`buf.validate.${type.name}.${field.name} has no translation to JSON Schema`);
    schema = { ...schema, ...translate(view.get(field)) };
  }
  return schema;
}

function items(value: unknown): unknown[] {
  return isReflectList(value) ? [...value] : [];
}

function nested(value: unknown): JsonSchema {
  return isReflectMessage(value) && isMessage(value.message, FieldRulesSchema) ? constraintsOf(value.message) : {};
}
