/**
 * Writes messages as REST JSON, with writers compiled once per descriptor. Implicit scalars, lists and maps are always
 * present. Unset messages, optional fields and enums are omitted, or null if the field is `nullable`.
 */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  type JsonObject,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { type Problem, ProblemSchema } from "../../gen/pilothouse/v1/common_pb.ts";
import { nullable } from "../../gen/pilothouse/v1/options_pb.ts";
import { problemJson } from "../problem.ts";
import { assertHasForm, enumNames, isWritable, onlyOneof } from "./field-names.ts";

/** Converts a message to a plain object for JSON.stringify. */
export type MessageWriter = (message: Message) => JsonObject;

type ValueWriter = (value: unknown) => JsonValue;
type MemberWriter = (source: Record<string, unknown>, json: JsonObject) => void;

const writers = new Map<DescMessage, MessageWriter>();

/** Returns the writer of a message. Its fields are compiled at the first use, because most methods are never called. */
export function compileWriter(desc: DescMessage): MessageWriter {
  const known = writers.get(desc);
  if (known) return known;
  if (desc.typeName === ProblemSchema.typeName) return (message) => problemJson(message as Problem);
  let members: readonly MemberWriter[] | undefined;
  const only = onlyOneof(desc);
  const write: MessageWriter = (message) => {
    const json: JsonObject = {};
    // Allows reading a message field by field.
    const source = message as unknown as Record<string, unknown>;
    members ??= memberWriters(desc);
    for (const member of members) {
      member(source, json);
    }
    return only ? ((json[only.name] ?? {}) as JsonObject) : json;
  };
  writers.set(desc, write);
  return write;
}

function memberWriters({ members }: DescMessage): MemberWriter[] {
  return members
    .filter(isWritable)
    .map((member) => (member.kind === "oneof" ? writeOneof(member) : writeField(member)));
}

function writeOneof(oneof: DescOneof): MemberWriter {
  const kinds = new Map(
    oneof.fields.map((field) => [field.localName, { kind: field.name, write: writeSingle(field) }] as const),
  );
  return (source, json) => {
    const set = source[oneof.localName] as { case?: string; value?: unknown };
    const member = set.case === undefined ? undefined : kinds.get(set.case);
    if (member) json[oneof.name] = { kind: member.kind, ...(member.write(set.value) as JsonObject) };
  };
}

function writeField(field: DescField): MemberWriter {
  const { name, localName } = field;
  const write = writeValueOf(field);
  const isNullable = getOption(field, nullable);
  // Proto3 enum fields have implicit presence, but zero means unspecified.
  const absent = field.fieldKind === "enum" ? 0 : undefined;
  return (source, json) => {
    const value = source[localName];
    if (value !== absent && value !== undefined) {
      json[name] = write(value);
    } else if (isNullable) {
      json[name] = null;
    }
  };
}

function writeValueOf(field: DescField): ValueWriter {
  const write = writeSingle(field);
  switch (field.fieldKind) {
    case "list":
      return (value) => (value as unknown[]).map(write);
    case "map":
      return (value) =>
        Object.fromEntries(Object.entries(value as Record<string, unknown>).map(([key, item]) => [key, write(item)]));
    default:
      return write;
  }
}

function writeSingle(field: DescField): ValueWriter {
  assertHasForm(field);
  if (field.message) return writeMessage(field.message);
  if (field.enum) return writeEnum(field.enum);
  switch (field.scalar) {
    case ScalarType.BYTES:
      return (value) => {
        const bytes = value as Uint8Array;
        return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
      };
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return Number;
    default:
      return (value) => value as JsonValue;
  }
}

function writeMessage(desc: DescMessage): ValueWriter {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return (value) => {
        const { seconds, nanos } = value as { seconds: bigint; nanos: number };
        return new Date(Number(seconds) * 1000 + Math.trunc(nanos / 1e6)).toISOString();
      };
    case "google.protobuf.Struct":
      return (value) => value as JsonObject;
    default: {
      const write = compileWriter(desc);
      return (value) => write(value as Message);
    }
  }
}

function writeEnum(desc: DescEnum): ValueWriter {
  const names = enumNames(desc);
  return (value) => names.get(value as number) ?? null;
}
