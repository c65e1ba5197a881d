/**
 * Reads the service's REST JSON into messages. What depends on a descriptor alone is compiled once into closures; the
 * request path runs those. Unlike ProtoJSON: keys are proto names, a oneof is one object with `kind`, enum values are
 * lower case without prefix, unknown fields are faults, and all faults of a request are collected.
 */
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import type { FieldFault } from "../errors.ts";
import { assertHasForm, enumNames, isWritable, onlyOneof } from "./names.ts";

/** Reads JSON into a new message; what is wrong with it is added to `faults`, with paths relative to the value. */
export type MessageReader = (json: unknown, faults: FieldFault[]) => Message;

type ValueReader = (json: unknown, faults: FieldFault[]) => unknown;
type MemberReader = (target: Record<string, unknown>, json: unknown, faults: FieldFault[]) => void;

const readers = new Map<DescMessage, MessageReader>();

/** Compiles the reader of a message. `omit` names fields that this JSON may not carry (the path says them). */
export function compileReader(desc: DescMessage, omit: ReadonlySet<string> = new Set()): MessageReader {
  const known = omit.size === 0 ? readers.get(desc) : undefined;
  if (known) {
    return known;
  }
  const members = new Map<string, MemberReader>();
  const only = onlyOneof(desc);
  const readOnly = only && readOneof(only);
  const read: MessageReader = (json, faults) => {
    const message = create(desc);
    if (readOnly) {
      readOnly(asRecord(message), json, faults);
      return message;
    }
    if (!isObject(json)) {
      faults.push({ field: "", message: "must be an object" });
      return message;
    }
    const target = asRecord(message);
    for (const key of Object.keys(json)) {
      const member = members.get(key);
      const value = json[key];
      if (member === undefined) {
        faults.push({ field: key, message: omit.has(key) ? "is given by the path" : "is not a known field" });
      } else if (value !== null) {
        const before = faults.length;
        member(target, value, faults);
        prefixFaults(faults, before, key);
      }
    }
    return message;
  };
  if (omit.size === 0) {
    // Registered before the fields are compiled, so that recursive messages find themselves.
    readers.set(desc, read);
  }
  for (const member of desc.members) {
    if (!omit.has(member.name) && isWritable(member)) {
      members.set(member.name, member.kind === "oneof" ? readOneof(member) : readField(member));
    }
  }
  return read;
}

/** Reads a string of a path or a query into a field, converting it to the field's type. */
export function readText(field: DescField, texts: readonly string[], target: Message, faults: FieldFault[]): void {
  if (texts.length > 1 && field.fieldKind !== "list") {
    faults.push({ field: field.name, message: "is given more than once" });
    return;
  }
  const read = readField(field);
  const values = texts.map((text) => textToJson(field, text));
  const before = faults.length;
  read(asRecord(target), field.fieldKind === "list" ? values : values[0], faults);
  prefixFaults(faults, before, field.name);
}

function textToJson(field: DescField, text: string): unknown {
  switch (field.scalar) {
    case undefined:
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return text;
    case ScalarType.BOOL:
      return text === "true" ? true : text === "false" ? false : text;
    default:
      return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  }
}

/** The boundary where a message is written field by field. */
function asRecord(message: Message): Record<string, unknown> {
  return message as unknown as Record<string, unknown>;
}

function isObject(json: unknown): json is Record<string, unknown> {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function prefixFaults(faults: FieldFault[], from: number, key: string): void {
  for (let i = from; i < faults.length; i++) {
    const fault = faults[i];
    if (fault) {
      const join = fault.field === "" || fault.field.startsWith("[") ? "" : ".";
      faults[i] = { field: `${key}${join}${fault.field}`, message: fault.message };
    }
  }
}

function readField(field: DescField): MemberReader {
  const { localName } = field;
  const read = readValueOf(field);
  return (target, json, faults) => {
    const before = faults.length;
    const value = read(json, faults);
    if (faults.length === before) {
      target[localName] = value;
    }
  };
}

function readValueOf(field: DescField): ValueReader {
  switch (field.fieldKind) {
    case "list":
      return readList(readSingle(field));
    case "map":
      return readMap(readSingle(field));
    default:
      return readSingle(field);
  }
}

function readSingle(field: DescField): ValueReader {
  assertHasForm(field);
  if (field.message) {
    return readMessage(field.message);
  }
  if (field.enum) {
    return readEnum(field.enum);
  }
  return readScalar(field.scalar ?? ScalarType.STRING);
}

function readMessage(desc: DescMessage): ValueReader {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return readTimestamp;
    case "google.protobuf.Struct":
      return readStruct;
    default:
      return compileReader(desc);
  }
}

function readOneof(oneof: DescOneof): MemberReader {
  const kinds = new Map(
    oneof.fields.map((field) => {
      const { message } = field;
      if (!message || message.fields.some((inner) => inner.name === "kind")) {
        throw new Error(`${field}: a oneof's member must be a message without a field named kind`);
      }
      return [field.name, { case: field.localName, read: readMessage(message) }] as const;
    }),
  );
  const expected = `must be one of ${[...kinds.keys()].join(", ")}`;
  return (target, json, faults) => {
    if (!isObject(json)) {
      faults.push({ field: "", message: "must be an object with a kind" });
      return;
    }
    const { kind, ...rest } = json;
    const member = typeof kind === "string" ? kinds.get(kind) : undefined;
    if (!member) {
      faults.push({ field: "kind", message: kind === undefined ? "is required" : expected });
      return;
    }
    target[oneof.localName] = { case: member.case, value: member.read(rest, faults) };
  };
}

function readList(read: ValueReader): ValueReader {
  return (json, faults) => {
    if (!Array.isArray(json)) {
      faults.push({ field: "", message: "must be an array" });
      return [];
    }
    return json.map((item: unknown, index) => {
      const before = faults.length;
      const value = item === null ? undefined : read(item, faults);
      if (item === null) {
        faults.push({ field: "", message: "must not be null" });
      }
      prefixFaults(faults, before, `[${index}]`);
      return value;
    });
  };
}

function readMap(read: ValueReader): ValueReader {
  return (json, faults) => {
    const map: Record<string, unknown> = {};
    if (!isObject(json)) {
      faults.push({ field: "", message: "must be an object" });
      return map;
    }
    for (const key of Object.keys(json)) {
      const before = faults.length;
      if (key === "__proto__") {
        faults.push({ field: "", message: "is not a permitted key" });
      } else {
        map[key] = read(json[key], faults);
      }
      prefixFaults(faults, before, key);
    }
    return map;
  };
}

function readEnum(desc: DescEnum): ValueReader {
  const values = new Map([...enumNames(desc)].map(([number, name]) => [name, number]));
  const expected = `must be one of ${[...values.keys()].join(", ")}`;
  return (json, faults) => {
    const value = typeof json === "string" ? values.get(json) : undefined;
    if (value === undefined) {
      faults.push({ field: "", message: expected });
    }
    return value;
  };
}

function readScalar(scalar: ScalarType): ValueReader {
  switch (scalar) {
    case ScalarType.STRING:
      return readString;
    case ScalarType.BOOL:
      return expecting("must be true or false", (json) => typeof json === "boolean");
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return expecting("must be a number", (json) => typeof json === "number" && Number.isFinite(json));
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return expecting("must be a whole number", (json) => Number.isInteger(json) && (Number(json) | 0) === json);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return expecting("must be a whole number, 0 or more", (json) => typeof json === "number" && json >>> 0 === json);
    case ScalarType.BYTES:
      return readBytes;
    default:
      return readLong;
  }
}

function expecting(message: string, holds: (json: unknown) => boolean): ValueReader {
  return (json, faults) => {
    if (!holds(json)) {
      faults.push({ field: "", message });
    }
    return json;
  };
}

const readString: ValueReader = (json, faults) => {
  if (typeof json !== "string") {
    faults.push({ field: "", message: "must be a string" });
  } else if (!json.isWellFormed()) {
    // A lone surrogate has no UTF-8 form: protobuf could not carry it to the worker.
    faults.push({ field: "", message: "must be well-formed Unicode" });
  } else if (json.includes("\0")) {
    // PostgreSQL stores every character but this one.
    faults.push({ field: "", message: "must not contain U+0000" });
  }
  return json;
};

const readLong: ValueReader = (json, faults) => {
  if (typeof json === "number" && Number.isSafeInteger(json)) {
    return BigInt(json);
  }
  faults.push({ field: "", message: "must be a whole number" });
  return 0n;
};

const readBytes: ValueReader = (json, faults) => {
  if (typeof json === "string" && /^[A-Za-z0-9+/]*={0,2}$/.test(json) && json.length % 4 !== 1) {
    return new Uint8Array(Buffer.from(json, "base64"));
  }
  faults.push({ field: "", message: "must be base64" });
  return new Uint8Array();
};

const readTimestamp: ValueReader = (json, faults) => {
  const text = typeof json === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(json);
  const ms = text ? Date.parse(String(json)) : Number.NaN;
  if (Number.isNaN(ms)) {
    faults.push({ field: "", message: "must be an ISO 8601 time such as 2026-01-31T12:00:00.000Z" });
    return undefined;
  }
  const seconds = Math.floor(ms / 1000);
  return { $typeName: "google.protobuf.Timestamp", seconds: BigInt(seconds), nanos: (ms - seconds * 1000) * 1e6 };
};

const readStruct: ValueReader = (json, faults) => {
  if (!isObject(json)) {
    faults.push({ field: "", message: "must be an object" });
    return undefined;
  }
  // A Struct field holds plain JSON in protobuf-es; the parse proves that it is some.
  fromJson(StructSchema, json as JsonValue);
  return json;
};
