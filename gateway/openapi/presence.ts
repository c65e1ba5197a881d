import { create, type DescField, type DescMessage, type DescOneof, getOption } from "@bufbuild/protobuf";
import { default_value, nullable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { isWritable } from "../../src/platform/rest-json/names.ts";
import { ruleFaults } from "../../src/platform/validation.ts";

/** Names the members that a request cannot do without: those whose rules an empty message breaks. */
export function requiredMembers(desc: DescMessage): Set<string> {
  const missing = ruleFaults(desc, create(desc)).map(({ field }) => field);
  return new Set(missing.filter((field) => desc.members.some(({ name }) => name === field)));
}

/** Names the members that every answer carries: all but those that the proto says are `optional`, and not nullable. */
export function writtenMembers(desc: DescMessage): Set<string> {
  return new Set(desc.members.filter(isAlwaysWritten).map(({ name }) => name));
}

/** A oneof is there: it is a request's, and answers repeat what requests said; of what has a default they may say nothing. */
export function isAlwaysWritten(member: DescField | DescOneof): boolean {
  if (member.kind === "oneof") return true;
  if (member.fieldKind === "enum" && getOption(member, default_value) !== "") return false;
  return isWritable(member) && (getOption(member, nullable) || !member.proto.proto3Optional);
}
