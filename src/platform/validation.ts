import { type DescField, type DescMessage, type DescOneof, type Message, ScalarType } from "@bufbuild/protobuf";
import {
  isReflectList,
  isReflectMap,
  isReflectMessage,
  type Path,
  type ReflectMessage,
  reflect,
} from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import type { FieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type FieldFault, fail, failFaults, maxFaults } from "./errors.ts";
import { joinPath } from "./rest-json/faults.ts";
import { onlyOneof } from "./rest-json/field-names.ts";
import { fieldOfRule, membersRequirement, requirementOf, rulesOf } from "./rule-messages.ts";

// Patterns come only from our protos, so the built-in RegExp is safe, and twice as fast.
const validator = createValidator({ regexMatch: (pattern, against) => new RegExp(pattern, "u").test(against) });

/** Validates a message against its buf.validate rules. Throws `validation-failed` with at most `maxFaults` faults. */
export function validate(desc: DescMessage, message: Message): void {
  const faults = ruleFaults(desc, message);
  if (faults.length > 0) throw failFaults("validation-failed", faults);
}

/** Returns the first violations of a message's buf.validate rules, at most twice `maxFaults`. */
export function ruleFaults(desc: DescMessage, message: Message): FieldFault[] {
  const result = validator.validate(desc, message);
  switch (result.kind) {
    case "valid":
      return [];
    case "invalid": {
      const whole = reflect(desc, message);
      const faults = result.violations.slice(0, 2 * maxFaults).map((violation) => toFault(violation, whole));
      // A missing value violates several rules, but is reported once.
      return [...new Map(faults.map((fault) => [`${fault.field}: ${fault.message}`, fault])).values()];
    }
    case "error":
      throw fail("internal", {}, { cause: result.error });
  }
}

function toFault(violation: Violation, whole: ReflectMessage): FieldFault {
  const { field: path, ruleId } = violation;
  const holder = path.reduce(step, whole);
  const blamed = isReflectMessage(holder) ? fieldOfRule(ruleId, holder.desc) : undefined;
  return { field: jsonPath(blamed ? [...path, blamed] : path), message: messageOf(violation, whole) };
}

function messageOf({ field: path, ruleId, forKey, message }: Violation, whole: ReflectMessage): string {
  const last = path.at(-1);
  if (ruleId === "message.oneof") {
    return membersRequirement(last?.kind === "field" && last.message ? last.message : whole.desc) ?? message;
  }
  switch (last?.kind) {
    case "oneof":
      return "is required";
    case "field":
      if (!isMissing(path, last, whole)) return requirementOf(ruleId, last) ?? message;
      // Protobuf cannot distinguish a missing list from an empty one.
      return last.fieldKind === "list" ? "must have at least one item" : "is required";
    default: {
      const holder = path.findLast((element) => element.kind === "field");
      const requirement = holder && requirementOf(ruleId, holder, rulesInside(rulesOf(holder), forKey));
      return requirement ? `${forKey ? "its key " : ""}${requirement}` : message;
    }
  }
}

/** Returns the rules of a list's items, or of a map's keys or values. */
function rulesInside({ type }: FieldRules, forKey: boolean): FieldRules | undefined {
  switch (type.case) {
    case "repeated":
      return type.value.items;
    case "map":
      return forKey ? type.value.keys : type.value.values;
    default:
      return undefined;
  }
}

/**
 * Returns whether a field is missing. Always false for scalars other than strings and bytes, because their rule is more
 * specific.
 */
function isMissing(path: Path, last: DescField, whole: ReflectMessage): boolean {
  const isNumber = last.fieldKind === "scalar" && last.scalar !== ScalarType.STRING && last.scalar !== ScalarType.BYTES;
  const holder = path.slice(0, -1).reduce(step, whole);
  return !isNumber && isReflectMessage(holder) && !holder.isSet(last);
}

/** Resolves one step of a path in a message, list or map. */
function step(value: unknown, element: Path[number]): unknown {
  if (element.kind === "field" && isReflectMessage(value)) return value.get(element);
  if (element.kind === "list_sub" && isReflectList(value)) return value.get(element.index);
  if (element.kind === "map_sub" && isReflectMap(value)) return value.get(element.key);
  return undefined;
}

/** Formats a path as in REST JSON, where a oneof's member is found under the oneof's name. */
function jsonPath(path: Path): string {
  return path.map(nameOf).reduce(joinPath, "");
}

/** Returns the JSON name of a oneof, or an empty text if the message has no other members. */
function nameOfOneof(oneof: DescOneof): string {
  return onlyOneof(oneof.parent) ? "" : oneof.name;
}

function nameOf(element: Path[number]): string {
  switch (element.kind) {
    case "field":
      return element.oneof ? nameOfOneof(element.oneof) : element.name;
    case "oneof":
      return nameOfOneof(element);
    case "list_sub":
      return `[${element.index}]`;
    case "map_sub":
      return String(element.key);
    default:
      return "";
  }
}
