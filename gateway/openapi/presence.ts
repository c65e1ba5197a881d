import { create, type DescField, type DescMessage, type DescOneof, getOption } from "@bufbuild/protobuf";
import { default_value, nullable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { isWritable } from "../../src/platform/rest-json/field-names.ts";
import { ruleFaults } from "../../src/platform/validation.ts";

/** Returns the required members of a request: those with a rule that an empty message violates. */
export function requiredMembers(desc: DescMessage): Set<string> {
  const missing = ruleFaults(desc, create(desc)).map(({ field }) => field);
  return new Set(missing.filter((field) => desc.members.some(({ name }) => name === field)));
}

/** Returns the members that are present in every response. */
export function writtenMembers(desc: DescMessage): Set<string> {
  return new Set(desc.members.filter(isAlwaysWritten).map(({ name }) => name));
}

/**
 * Returns whether responses always contain a member: oneofs, and fields that are nullable or not `optional`. Enums with
 * a default may be absent.
 */
export function isAlwaysWritten(member: DescField | DescOneof): boolean {
  if (member.kind === "oneof") return true;
  if (member.fieldKind === "enum" && getOption(member, default_value) !== "") return false;
  return isWritable(member) && (getOption(member, nullable) || !member.proto.proto3Optional);
}
