import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { type FieldRules, field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { Contract } from "./contract-image.ts";

/** Google types that a request may contain, because they are small or have their own bounds. */
const plain = new Set([
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "google.protobuf.FieldMask",
  // Bounded by max_body_bytes and max_message_bytes of the method.
  "google.api.HttpBody",
]);

/** Arbitrary JSON, which no rule can bound. Its reader enforces the limits, with a test of its own. */
const boundByReader = new Set(["pilothouse.v1.SendAgentMessageRequest.output_schema"]);

/** Every string, bytes, list, map, enum and mask of a request must be bounded, in nested messages too. */
export function requestBounds(contract: Contract): string[] {
  const faults = new Set<string>();
  const seen = new Set<DescMessage>();
  const visit = (message: DescMessage) => {
    if (seen.has(message)) return;
    seen.add(message);
    for (const field of message.fields) {
      if (boundByReader.has(`${message.typeName}.${field.name}`)) continue;
      const fault = faultOf(field, hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined);
      if (fault !== undefined) faults.add(`${field}: ${fault}`);
      if (field.message && !field.message.typeName.startsWith("google.")) visit(field.message);
    }
  };
  for (const method of contract.methods) {
    visit(method.input);
  }
  return [...faults];
}

function faultOf(field: DescField, rules: FieldRules | undefined): string | undefined {
  switch (field.fieldKind) {
    case "list": {
      const list = rules?.type.case === "repeated" ? rules.type.value : undefined;
      return list === undefined || list.maxItems === 0n
        ? "has no max_items"
        : valueFault(field.listKind === "scalar" ? field.scalar : field.listKind, list.items, "its items have");
    }
    case "map": {
      const map = rules?.type.case === "map" ? rules.type.value : undefined;
      return map === undefined || map.maxPairs === 0n
        ? "has no max_pairs"
        : (valueFault(field.mapKey, map.keys, "its keys have") ??
            valueFault(field.mapKind === "scalar" ? field.scalar : field.mapKind, map.values, "its values have"));
    }
    case "scalar":
      return valueFault(field.scalar, rules, "has");
    case "enum":
      return valueFault("enum", rules, "has");
    case "message":
      return messageFault(field.message, rules);
  }
}

function valueFault(
  type: ScalarType | "enum" | "message",
  rules: FieldRules | undefined,
  subject: string,
): string | undefined {
  const { case: kind, value } = rules?.type ?? { case: undefined, value: undefined };
  if (type === ScalarType.STRING) {
    return kind === "string" && (value.maxLen > 0n || value.len > 0n || value.in.length > 0)
      ? undefined
      : `${subject} no max_len`;
  }
  if (type === ScalarType.BYTES) return kind === "bytes" && value.maxLen > 0n ? undefined : `${subject} no max_len`;
  if (type === "enum") return kind === "enum" && value.definedOnly ? undefined : `${subject} no defined_only`;
  return undefined;
}

function messageFault(message: DescMessage, rules: FieldRules | undefined): string | undefined {
  if (message.typeName === "google.protobuf.FieldMask") {
    return rules?.type.case === "fieldMask" && rules.type.value.in.length > 0
      ? undefined
      : "does not say what it may name";
  }
  return message.typeName.startsWith("google.") && !plain.has(message.typeName) ? "has no bound" : undefined;
}
