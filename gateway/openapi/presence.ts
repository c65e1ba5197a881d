import { create, type DescMessage, getOption } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { nullable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { Failure } from "../../src/platform/errors.ts";
import { isWritable } from "../../src/platform/rest-json/names.ts";
import { validate } from "../../src/platform/validation.ts";

/** Names the members that a request cannot do without: those that the validator misses in an empty message. */
export function requiredMembers(desc: DescMessage): Set<string> {
  try {
    validate(desc, create(desc));
    return new Set();
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.slug === "validation-failed") {
      return new Set(thrown.errors.map(({ field }) => field).filter((field) => /^\w+$/.test(field)));
    }
    throw thrown;
  }
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
