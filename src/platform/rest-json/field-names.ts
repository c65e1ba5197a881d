import { type DescEnum, type DescField, type DescMessage, type DescOneof, ScalarType } from "@bufbuild/protobuf";

/** Maps an enum's numbers, except zero, to JSON names: in lower case and without prefix. */
export function enumNames(desc: DescEnum): Map<number, string> {
  const prefix = desc.sharedPrefix ?? "";
  return new Map(
    desc.values
      .filter((value) => value.number !== 0)
      .map((value) => [value.number, value.name.slice(prefix.length).toLowerCase()]),
  );
}

/** Stored names of an enum's values, equal to their JSON names. */
export type NamesOf<Enum> = Exclude<Lowercase<string & keyof Enum>, "unspecified">;

/** Converter between enum values and stored names. */
interface StoredNames<Enum> {
  /** Returns the value of a stored name, or unspecified for a name that a later release stored. */
  toMessage(name: NamesOf<Enum>): Enum[keyof Enum];
  /** Returns the stored name of a value, or undefined if unspecified. */
  toStored(value: number): NamesOf<Enum> | undefined;
}

/** Creates the converter of an enum. */
export function storedNames<Enum extends Readonly<Record<string, number>>>(values: Enum): StoredNames<Enum> {
  const names = new Map(Object.entries(values).map(([name, value]) => [value, name.toLowerCase() as NamesOf<Enum>]));
  names.delete(0);
  // Each enum has the value zero.
  const unspecified = 0 as Enum[keyof Enum];
  return {
    toMessage: (name) => values[name.toUpperCase() as keyof Enum] ?? unspecified,
    toStored: (value) => names.get(value),
  };
}

/** Returns whether clients may write a member in JSON. Update masks are derived from the keys instead. */
export function isWritable(member: DescField | DescOneof): boolean {
  return !(member.kind === "field" && member.message?.typeName === "google.protobuf.FieldMask");
}

/** Returns the oneof of a message without other members. Such a message has the JSON of the oneof. */
export function onlyOneof({ members }: DescMessage): DescOneof | undefined {
  const [first] = members;
  return members.length === 1 && first?.kind === "oneof" ? first : undefined;
}

/**
 * Throws for types without a REST JSON form: wrappers, Duration, Any and so on, and maps with keys other than strings.
 * Called when a field is compiled.
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
