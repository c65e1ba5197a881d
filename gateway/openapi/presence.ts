import { create, type DescMessage, getOption } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { nullable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { isWritable } from "../../src/platform/rest-json/names.ts";
import { ruleFaults } from "../../src/platform/validation.ts";

/** Names the members that a request cannot do without: those whose rules an empty message breaks. */
export function requiredMembers(desc: DescMessage): Set<string> {
  const missing = ruleFaults(desc, create(desc)).map(({ field }) => field);
  return new Set(missing.filter((field) => desc.members.some(({ name }) => name === field)));
}

/** Names the members that every answer carries: what has no presence, and what is null where it is unset. */
export function writtenMembers(desc: DescMessage): Set<string> {
  return new Set(
    desc.fields
      .filter(isWritable)
      .filter(
        (field) =>
          getOption(field, nullable) ||
          field.fieldKind === "list" ||
          field.fieldKind === "map" ||
          (field.fieldKind === "scalar" &&
            field.oneof === undefined &&
            field.presence === FeatureSet_FieldPresence.IMPLICIT),
      )
      .map((field) => field.name),
  );
}
