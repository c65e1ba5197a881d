/**
 * Reads REST JSON into messages, with readers compiled once per descriptor. Differences from ProtoJSON:
 * - Keys are proto names, and a oneof is one object with `kind`.
 * - Enum values are lower case without prefix.
 * - Unknown fields are faults, and all faults are collected.
 */
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import type { FieldFault } from "../errors.ts";
import { acceptedNames, numberRequirement, rulesOf } from "../rule-messages.ts";
import { addFault, prefixFaults } from "./faults.ts";
import { assertHasForm, enumNames, isWritable, onlyOneof } from "./field-names.ts";
import { suggestion } from "./suggestion.ts";

/** Reads JSON into a new message. Adds faults with paths relative to the value. */
export type MessageReader = (json: unknown, faults: FieldFault[]) => Message;

/** Reads a field's path or query texts into the field of `target`. Adds faults. */
export type TextReader = (texts: readonly string[], target: Message, faults: FieldFault[]) => void;

/**
 * Returns undefined for an invalid value. Messages other than Timestamp and Struct are always returned, so that their
 * rules can be checked.
 */
type ValueReader = (json: unknown, faults: FieldFault[]) => unknown;
type MemberReader = (target: Record<string, unknown>, json: unknown, faults: FieldFault[]) => void;

const readers = new Map<DescMessage, MessageReader>();

/**
 * Returns the reader of a message. `omit` names fields that must not be in the JSON, because the path sets them. The
 * fields are compiled at the first use, because most methods are never called.
 */
export function compileReader(desc: DescMessage, omit: ReadonlySet<string> = new Set()): MessageReader {
  const known = omit.size === 0 ? readers.get(desc) : undefined;
  if (known) return known;
  let members: ReadonlyMap<string, MemberReader> | undefined;
  let readOnly: MemberReader | undefined;
  const only = onlyOneof(desc);
  const read: MessageReader = (json, faults) => {
    const message = create(desc);
    if (only) {
      readOnly ??= readOneof(only);
      readOnly(asRecord(message), json, faults);
      return message;
    }
    if (!isObject(json)) {
      addFault(faults, "", "must be an object");
      return message;
    }
    members ??= memberReaders(desc, omit);
    const fields = members;
    const target = asRecord(message);
    for (const key of Object.keys(json)) {
      const member = fields.get(key);
      const value = json[key];
      if (member === undefined) {
        addFault(faults, key, () =>
          omit.has(key) ? "is given by the path" : `is not a known field${suggestion(key, fields.keys())}`,
        );
      } else if (value !== null) {
        const before = faults.length;
        member(target, value, faults);
        prefixFaults(faults, before, key);
      }
    }
    return message;
  };
  if (omit.size === 0) readers.set(desc, read);
  return read;
}

function memberReaders(desc: DescMessage, omit: ReadonlySet<string>): Map<string, MemberReader> {
  const members = desc.members.filter((member) => !omit.has(member.name) && isWritable(member));
  return new Map(
    members.map((member) => [member.name, member.kind === "oneof" ? readOneof(member) : readField(member)]),
  );
}

/** Returns a reader of path or query texts into a field, with conversion to its type. Compiled at the first use. */
export function compileTextReader(field: DescField): TextReader {
  let read: MemberReader | undefined;
  const isList = field.fieldKind === "list";
  return (texts, target, faults) => {
    if (texts.length > 1 && !isList) {
      addFault(faults, field.name, "is given more than once");
      return;
    }
    const values = texts.map((text) => textToJson(field, text));
    const before = faults.length;
    read ??= readField(field);
    read(asRecord(target), isList ? values : values[0], faults);
    prefixFaults(faults, before, field.name);
  };
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

/** Allows writing a message field by field. */
function asRecord(message: Message): Record<string, unknown> {
  return message as unknown as Record<string, unknown>;
}

function isObject(json: unknown): json is Record<string, unknown> {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function readField(field: DescField): MemberReader {
  const { localName } = field;
  const read = readValueOf(field);
  return (target, json, faults) => {
    const value = read(json, faults);
    if (value !== undefined) target[localName] = value;
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
  if (field.message) return readMessage(field.message);
  if (field.enum) return readEnum(field.enum, acceptedNames(field.enum, rulesOf(field)));
  return readScalar(field);
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
      addFault(faults, "", "must be an object with a kind");
      return;
    }
    const { kind, ...rest } = json;
    const member = typeof kind === "string" ? kinds.get(kind) : undefined;
    if (!member) {
      addFault(faults, "kind", () => {
        if (kind === undefined || kind === null) return "is required";
        return typeof kind === "string" ? `${expected}${suggestion(kind, kinds.keys())}` : expected;
      });
      return;
    }
    target[oneof.localName] = { case: member.case, value: member.read(rest, faults) };
  };
}

function readList(read: ValueReader): ValueReader {
  return (json, faults) => {
    if (!Array.isArray(json)) {
      addFault(faults, "", "must be an array");
      return undefined;
    }
    const items = json.map((item: unknown, index) => {
      const before = faults.length;
      const value = item === null ? undefined : read(item, faults);
      if (item === null) addFault(faults, "", "must not be null");
      prefixFaults(faults, before, `[${index}]`);
      return value;
    });
    return items.includes(undefined) ? undefined : items;
  };
}

function readMap(read: ValueReader): ValueReader {
  return (json, faults) => {
    if (!isObject(json)) {
      addFault(faults, "", "must be an object");
      return undefined;
    }
    const map: Record<string, unknown> = {};
    for (const key of Object.keys(json)) {
      const before = faults.length;
      if (key === "__proto__") {
        addFault(faults, "", "is not a permitted key");
      } else {
        map[key] = read(json[key], faults);
      }
      prefixFaults(faults, before, key);
    }
    return Object.values(map).includes(undefined) ? undefined : map;
  };
}

function readEnum(desc: DescEnum, taken: readonly string[]): ValueReader {
  const values = new Map([...enumNames(desc)].map(([number, name]) => [name, number]));
  const expected = `must be one of ${taken.join(", ")}`;
  return (json, faults) => {
    const value = typeof json === "string" ? values.get(json) : undefined;
    if (value === undefined)
      addFault(faults, "", () => (typeof json === "string" ? `${expected}${suggestion(json, taken)}` : expected));
    return value;
  };
}

function readScalar(field: DescField): ValueReader {
  const requirement = numberRequirement(field.scalar, rulesOf(field)) ?? "must be a whole number";
  switch (field.scalar) {
    case undefined:
    case ScalarType.STRING:
      return readString;
    case ScalarType.BOOL:
      return expecting("must be true or false", (json) => typeof json === "boolean");
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return expecting(requirement, (json) => typeof json === "number" && Number.isFinite(json));
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return expecting(requirement, (json) => Number.isInteger(json) && (Number(json) | 0) === json);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return expecting(requirement, (json) => typeof json === "number" && json >>> 0 === json);
    case ScalarType.BYTES:
      return readBytes;
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return readLong(expecting(requirement, (json) => Number.isSafeInteger(json) && Number(json) >= 0));
    default:
      return readLong(expecting(requirement, Number.isSafeInteger));
  }
}

function expecting(message: string, holds: (json: unknown) => boolean): ValueReader {
  return (json, faults) => {
    if (holds(json)) return json;
    addFault(faults, "", message);
    return undefined;
  };
}

function readLong(readWhole: ValueReader): ValueReader {
  return (json, faults) => {
    const value = readWhole(json, faults);
    return typeof value === "number" ? BigInt(value) : undefined;
  };
}

const readString: ValueReader = (json, faults) => {
  const fault = typeof json === "string" ? textFault(json) : "must be a string";
  if (fault === undefined) return json;
  addFault(faults, "", fault);
  return undefined;
};

/** Returns why a text cannot be stored or sent, or undefined. */
export function textFault(text: string): string | undefined {
  // A lone surrogate has no UTF-8 encoding, so protobuf could not transfer it.
  if (!text.isWellFormed()) return "must be well-formed Unicode";
  // U+0000 is the only character that PostgreSQL cannot store.
  return text.includes("\0") ? "must not contain U+0000" : undefined;
}

const readBytes: ValueReader = (json, faults) => {
  if (typeof json === "string" && /^[A-Za-z0-9+/]*={0,2}$/.test(json) && json.length % 4 !== 1) {
    return new Uint8Array(Buffer.from(json, "base64"));
  }
  addFault(faults, "", "must be base64");
  return undefined;
};

const time = /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

const readTimestamp: ValueReader = (json, faults) => {
  const parts = typeof json === "string" ? time.exec(json) : null;
  const ms = parts ? Date.parse(parts[0]) : Number.NaN;
  if (!parts || Number.isNaN(ms) || !isDay(Number(parts[1]), Number(parts[2]), Number(parts[3]))) {
    addFault(faults, "", "must be an ISO 8601 time such as 2026-01-31T12:00:00.000Z");
    return undefined;
  }
  const seconds = Math.floor(ms / 1000);
  return { $typeName: "google.protobuf.Timestamp", seconds: BigInt(seconds), nanos: (ms - seconds * 1000) * 1e6 };
};

/** Checks the day, because Date.parse accepts 30 February as 2 March. Excludes the first and last year of Timestamp. */
function isDay(year: number, month: number, day: number): boolean {
  return year > 1 && year < 9999 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

// protobuf implementations limit nesting to 100, and each Struct level takes three.
const deepest = 32;

/** Reads a Struct, which contains plain JSON. */
const readStruct: ValueReader = (json, faults) => {
  const fault = isObject(json) ? plainJsonFault(json, deepest) : "must be an object";
  if (fault === undefined) return json;
  addFault(faults, "", fault);
  return undefined;
};

function plainJsonFault(json: unknown, depth: number): string | undefined {
  if (typeof json === "string") return textFault(json);
  if (typeof json === "number" && !Number.isFinite(json)) return "must not contain numbers beyond 1.8e308";
  if (typeof json !== "object" || json === null) return undefined;
  if (depth === 0) return `must not be nested deeper than ${deepest}`;
  for (const [key, value] of Object.entries(json)) {
    const fault = textFault(key) ?? plainJsonFault(value, depth - 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
