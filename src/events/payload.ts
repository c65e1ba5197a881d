import {
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  type JsonValue,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { event_type } from "../gen/pilothouse/v1/options_pb.ts";

/** What an event says: its type, and its `data` in the JSON of the REST interface. */
export interface EventPayload {
  readonly type: string;
  readonly data: Readonly<Record<string, JsonValue>>;
}

/** Writes an enum's value as the interface does: without prefix, in lower case. */
function enumName({ values, sharedPrefix = "" }: DescEnum, number: number): string {
  const name = values.find((value) => value.number === number)?.name ?? String(number);
  return name.toLowerCase().replace(sharedPrefix, "");
}

function fieldValue(field: DescField, value: unknown): JsonValue {
  if (field.fieldKind === "enum" && typeof value === "number") return enumName(field.enum, value);
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "string" || typeof value === "boolean" || typeof value === "number") return value;
  throw new Error(`${field.parent.typeName}.${field.name}: an event carries scalars and enums only`);
}

/** Makes a payload of a message that has an `event_type`. Fields without presence are always written. */
export function eventPayload<D extends DescMessage>(schema: D, message: MessageShape<D> & Message): EventPayload {
  if (!hasOption(schema, event_type)) throw new Error(`${schema.typeName} has no event_type`);
  const view = reflect(schema, message);
  const written = schema.fields.filter(
    (field) => view.isSet(field) || field.presence === FeatureSet_FieldPresence.IMPLICIT,
  );
  return {
    type: getOption(schema, event_type),
    data: Object.fromEntries(written.map((field) => [field.name, fieldValue(field, view.get(field))])),
  };
}
