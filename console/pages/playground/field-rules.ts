import { type DescField, getOption, ScalarType } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { default_value, example } from "../../../src/gen/pilothouse/v1/options_pb.ts";

/** Returns the values that a field or its items can have, or an empty list if there is no such list. */
export function choicesOf(field: DescField): string[] {
  const { type } = getOption(field, fieldRules);
  const rules = type.case === "repeated" ? type.value.items?.type : type;
  if (field.enum) {
    const { sharedPrefix = "", values } = field.enum;
    return values.filter(({ number }) => number !== 0).map(({ name }) => name.slice(sharedPrefix.length).toLowerCase());
  }
  return rules?.case === "string" ? rules.value.in : [];
}

/** Returns the smallest and the largest number of a field. */
export function boundsOf(field: DescField): { min?: number; max?: number } {
  const { type } = getOption(field, fieldRules);
  const floor = field.scalar === ScalarType.UINT32 ? { min: 0 } : {};
  if (type.case !== "uint32" && type.case !== "double") return floor;
  const { greaterThan, lessThan } = type.value;
  return {
    ...(greaterThan.case === "gte" ? { min: greaterThan.value } : floor),
    ...(lessThan.case === "lte" && { max: lessThan.value }),
  };
}

/** Returns the longest text of a field, in characters. */
export function longestOf(field: DescField): number | undefined {
  const { type } = getOption(field, fieldRules);
  return type.case === "string" && type.value.maxLen > 0n ? Number(type.value.maxLen) : undefined;
}

/** Returns what a field shows while it is empty: its default, else its example. */
export function placeholderOf(field: DescField): string {
  return getOption(field, default_value) || getOption(field, example);
}

/** Returns whether each request has the field. */
export const isRequired = (field: DescField): boolean => getOption(field, fieldRules).required;
