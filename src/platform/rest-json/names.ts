import { type DescEnum, type DescField, type DescMessage, type DescOneof, ScalarType } from "@bufbuild/protobuf";

/** Numbers of an enum's values to their names in JSON: without the enum's prefix, in lower case, zero left out. */
export function enumNames(desc: DescEnum): Map<number, string> {
  const prefix = desc.sharedPrefix ?? "";
  return new Map(
    desc.values
      .filter((value) => value.number !== 0)
      .map((value) => [value.number, value.name.slice(prefix.length).toLowerCase()]),
  );
}

/** What rows call the values of an enum: their names in JSON. */
export type NamesOf<Enum> = Exclude<Lowercase<string & keyof Enum>, "unspecified">;

/** The boundary between an enum and the names of its values in rows. */
interface StoredNames<Enum> {
  /** The value that a row names. */
  toMessage(name: NamesOf<Enum>): Enum[keyof Enum];
  /** The name of the value that a message has; undefined when it has none. */
  toStored(value: number): NamesOf<Enum> | undefined;
}

/** Translates between an enum and the names of its values in rows. */
export function storedNames<Enum extends Readonly<Record<string, number>>>(values: Enum): StoredNames<Enum> {
  const names = new Map(Object.entries(values).map(([name, value]) => [value, name.toLowerCase() as NamesOf<Enum>]));
  names.delete(0);
  return {
    toMessage: (name) => values[name.toUpperCase() as keyof Enum],
    toStored: (value) => names.get(value),
  };
}

/** Says whether clients may write a member in JSON. An update mask is derived from the keys that are present. */
export function isWritable(member: DescField | DescOneof): boolean {
  return !(member.kind === "field" && member.message?.typeName === "google.protobuf.FieldMask");
}

/** The oneof of a message that has nothing else: such a message is the oneof's object itself. */
export function onlyOneof({ members }: DescMessage): DescOneof | undefined {
  const [first] = members;
  return members.length === 1 && first?.kind === "oneof" ? first : undefined;
}

/**
 * Refuses what the REST JSON has no form for: wrappers, Duration, Any and the like, and maps with other keys than strings.
 * Called while reader and writer are compiled, so a contract that has one stops the start and no request.
 */
export function assertHasForm(field: DescField): void {
  if (field.fieldKind === "map" && field.mapKey !== ScalarType.STRING) {
    throw new Error(`${field}: the keys of a JSON object are strings`);
  }
  const type = field.message?.typeName ?? field.enum?.typeName ?? "";
  if (type.startsWith("google.protobuf.") && !wellKnown.has(type)) {
    throw new Error(`${field}: ${type} has no form in the REST JSON`);
  }
}

const wellKnown = new Set(["google.protobuf.Timestamp", "google.protobuf.Struct"]);
