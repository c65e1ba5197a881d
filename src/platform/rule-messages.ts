/** Error texts for buf.validate rules. The validator's own text is used only for a rule that has no text here. */
import { type DescEnum, type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import {
  type FieldRules,
  field as fieldRules,
  message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { example } from "../gen/pilothouse/v1/options_pb.ts";
import { counted } from "./counted.ts";
import { enumNames } from "./rest-json/field-names.ts";

/** Describes the requirement of a rule by its id, such as `string.max_len`, or returns undefined for unknown rules. */
export function requirementOf(
  ruleId: string,
  field: DescField,
  rules: FieldRules = rulesOf(field),
): string | undefined {
  const [type = "", rule = ""] = ruleId.split(".");
  if (rules.type.case === "fieldMask") return `must have no other paths than ${rules.type.value.in.join(", ")}`;
  if (type !== rules.type.case) return undefined;
  if (rule === "in" && rules.type.case === "string") return `must be one of ${rules.type.value.in.join(", ")}`;
  if (rule === "pattern") return `must look like ${exampleOf(field)}`;
  if (rule === "email") return "must be an e-mail address";
  if (rule === "unique") return "must not have duplicate items";
  if (field.enum && type === "enum") return `must be one of ${acceptedNames(field.enum, rules).join(", ")}`;
  return lengthRequirement(rules) ?? numberRequirement(field.scalar, rules);
}

/** Returns the enum value names that the rules of a field or its items permit. */
export function acceptedNames(desc: DescEnum, { type }: FieldRules): string[] {
  const own = type.case === "repeated" ? type.value.items?.type : type;
  const refused = own?.case === "enum" ? own.value.notIn : [];
  return [...enumNames(desc)].flatMap(([number, name]) => (refused.includes(number) ? [] : name));
}

/** Returns the example of a field, or the first of its items. */
function exampleOf(field: DescField): string {
  const text = getOption(field, example);
  return text.startsWith("[") ? String(JSON.parse(text)[0]) : text;
}

/** Describes a valid number, such as `must be a whole number from 1 to 100`. Returns undefined for other types. */
export function numberRequirement(scalar: ScalarType | undefined, rules: FieldRules): string | undefined {
  const noun = numberNouns.get(scalar ?? ScalarType.STRING);
  if (noun === undefined) return undefined;
  const { min, max } = boundsOf(rules, scalar);
  if (min !== undefined && max !== undefined) return `must be ${noun} from ${min} to ${max}`;
  if (min !== undefined) return `must be ${noun}, ${min} or more`;
  return max === undefined ? `must be ${noun}` : `must be ${noun}, ${max} or less`;
}

/** Describes which members of a message exclude each other. */
export function membersRequirement(desc: DescMessage): string | undefined {
  const [oneof] = getOption(desc, messageRules).oneof;
  return oneof && `must have ${oneof.required ? "exactly" : "at most"} one of ${oneof.fields.join(", ")}`;
}

/** Returns the field named in a message rule's id: `capture.quality` names `quality`, `tap.one` names none. */
export function fieldOfRule(ruleId: string, desc: DescMessage): DescField | undefined {
  return desc.fields.find(({ name }) => ruleId.endsWith(`.${name}`));
}

export function rulesOf(field: DescField): FieldRules {
  return getOption(field, fieldRules);
}

const numberNouns = new Map([
  [ScalarType.DOUBLE, "a number"],
  [ScalarType.FLOAT, "a number"],
  [ScalarType.INT32, "a whole number"],
  [ScalarType.INT64, "a whole number"],
  [ScalarType.UINT32, "a whole number"],
  [ScalarType.UINT64, "a whole number"],
]);

type Bound = number | bigint;

function boundsOf({ type }: FieldRules, scalar: ScalarType | undefined): { min?: Bound; max?: Bound } {
  const floor = scalar === ScalarType.UINT32 || scalar === ScalarType.UINT64 ? { min: 0 } : {};
  switch (type.case) {
    case "double":
    case "float":
    case "int32":
    case "int64":
    case "uint32":
    case "uint64": {
      const { greaterThan, lessThan } = type.value;
      return {
        ...(greaterThan.case === "gte" ? { min: greaterThan.value } : floor),
        ...(lessThan.case === "lte" && { max: lessThan.value }),
      };
    }
    default:
      return floor;
  }
}

function lengthRequirement({ type }: FieldRules): string | undefined {
  switch (type.case) {
    case "string":
      return lengthMessage(type.value.minLen, type.value.maxLen, "character");
    case "bytes":
      return lengthMessage(type.value.minLen, type.value.maxLen, "byte");
    case "repeated":
      return lengthMessage(type.value.minItems, type.value.maxItems, "item");
    case "map":
      return lengthMessage(type.value.minPairs, type.value.maxPairs, "entry");
    default:
      return undefined;
  }
}

function lengthMessage(min: bigint, max: bigint, noun: string): string {
  if (max === 0n) return `must have at least ${min === 1n ? `one ${noun}` : counted(min, noun)}`;
  if (min === 0n) return `must have at most ${counted(max, noun)}`;
  return `must have ${min === max ? "" : `${min} to `}${counted(max, noun)}`;
}
