import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescOneof,
  getOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { field as fieldRules, message as messageRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { event_type, example, nullable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { enumNames, isWritable, onlyOneof } from "../../src/platform/rest-json/field-names.ts";
import { constraintsOf } from "./constraints.ts";
import type { Json } from "./model.ts";
import { pascalCase } from "./operation-names.ts";
import { isAlwaysWritten, requiredMembers } from "./presence.ts";

type JsonObject = Record<string, Json>;

const nothing: ReadonlySet<string> = new Set();
const time = "2026-01-31T12:00:00.000Z";

/**
 * Returns an example request: its required members and every field with an example, except the members in `omit`.
 * Oneofs show the first alternative.
 */
export function requestExample(desc: DescMessage, omit: ReadonlySet<string> = nothing): JsonObject {
  const whole = onlyOneof(desc);
  if (whole) return oneofExample(whole, requestExample);
  const required = requiredMembers(desc);
  const alternatives = getOption(desc, messageRules).oneof;
  const chosen = new Set(alternatives.map(({ fields }) => fields[0]));
  const skipped = new Set(alternatives.flatMap(({ fields }) => fields).filter((name) => !chosen.has(name)));
  const json: JsonObject = {};
  for (const member of desc.members) {
    if (isWritable(member) && !omit.has(member.name) && !skipped.has(member.name)) {
      const value = requestMember(member, required.has(member.name) || chosen.has(member.name));
      if (value !== undefined) json[member.name] = value;
    }
  }
  return json;
}

/**
 * Returns an example request for each alternative of the message's oneofs, or for each value of its enum field `kind`.
 */
export function kindExamples(desc: DescMessage, omit: ReadonlySet<string>): [kind: string, example: { value: Json }][] {
  const whole = requestExample(desc, omit);
  return desc.members.flatMap((member) => {
    if (member.kind === "oneof") {
      return member.fields.map(({ name, message }): [string, { value: Json }] => [
        name,
        { value: { ...whole, [member.name]: { kind: name, ...(message && requestExample(message)) } } },
      ]);
    }
    if (member.name !== "kind" || !member.enum) return [];
    return [...enumNames(member.enum).values()].map((kind): [string, { value: Json }] => [
      kind,
      { value: { ...whole, kind } },
    ]);
  });
}

/**
 * Returns an example of a member. For a oneof, shows the first alternative. For a field, returns the value of its
 * option `example`, or else a placeholder if the field is needed.
 */
export function requestMember(member: DescField | DescOneof, needed: boolean): Json | undefined {
  if (member.kind === "oneof") return oneofExample(member, requestExample);
  return fieldExample(member) ?? (needed ? wrap(member, placeholderFor(member, requestExample)) : undefined);
}

/** Returns an example response. Fields that a response may omit appear only if they have an example. */
export function responseExample(desc: DescMessage, seen: ReadonlySet<DescMessage> = new Set()): JsonObject {
  const inner = (message: DescMessage) => responseExample(message, new Set([...seen, desc]));
  const whole = onlyOneof(desc);
  if (whole) return oneofExample(whole, inner);
  const json: JsonObject = {};
  for (const member of desc.members) {
    if (!isWritable(member)) continue;
    const value = member.kind === "oneof" ? oneofExample(member, inner) : responseField(member, inner, seen);
    if (value !== undefined) json[member.name] = value;
  }
  return json;
}

function responseField(
  field: DescField,
  inner: (desc: DescMessage) => JsonObject,
  seen: ReadonlySet<DescMessage>,
): Json | undefined {
  const value = fieldExample(field);
  if (value !== undefined) return value;
  if (getOption(field, nullable)) return null;
  if (field.fieldKind === "map") return {};
  const recursive = field.message !== undefined && seen.has(field.message);
  if (field.fieldKind === "list") return field.message && !recursive ? [placeholderFor(field, inner)] : [];
  return isAlwaysWritten(field) && !recursive ? placeholderFor(field, inner) : undefined;
}

/** Returns an event whose data is an example of its payload. */
export function eventExample(event: DescMessage, payload: DescMessage): JsonObject {
  return { ...responseExample(event), type: getOption(payload, event_type), data: responseExample(payload) };
}

/** Returns the example in the option of a field, if any. */
function fieldExample(field: DescField): Json | undefined {
  const text = getOption(field, example);
  if (text === "") return undefined;
  return readOption(field, text);
}

/**
 * Parses an option that contains a value of a field, such as `example`. The option is JSON, or the text itself for
 * strings, bytes, enums and timestamps.
 */
export function readOption(field: DescField, text: string): Json {
  const isText =
    field.enum !== undefined ||
    field.scalar === ScalarType.STRING ||
    field.scalar === ScalarType.BYTES ||
    field.message?.typeName === "google.protobuf.Timestamp";
  return field.fieldKind !== "list" && field.fieldKind !== "map" && isText ? text : (JSON.parse(text) as Json);
}

/**
 * Returns an example of a path parameter: that of the field, else of the id to which the field refers. Otherwise
 * returns an example id from a response of the service, or `id`.
 */
export function pathExample(field: DescField, method: DescMethod): string {
  const methods = [method, ...method.parent.methods].filter(({ methodKind }) => methodKind === "unary");
  const ids = methods.map(({ output }) => output.fields.find(({ name }) => name === "id"));
  const id = ids.find((candidate) => candidate !== undefined);
  return String(fieldExample(field) ?? idOf(field) ?? (id && fieldExample(id)) ?? "id");
}

/** Returns the example id of the message that a field such as `session_id` refers to, if any. */
function idOf(field: DescField): Json | undefined {
  const name = /^(\w+)_id$/.exec(field.name)?.[1];
  const { file } = field.parent;
  const target = [file, ...file.dependencies]
    .flatMap(({ messages }) => messages)
    .find((desc) => name !== undefined && desc.name === pascalCase(name));
  const id = target?.fields.find((inner) => inner.name === "id");
  return id && fieldExample(id);
}

function oneofExample(oneof: DescOneof, inner: (desc: DescMessage) => JsonObject): JsonObject {
  const [first] = oneof.fields;
  return first?.message ? { kind: first.name, ...inner(first.message) } : {};
}

function placeholderFor(field: DescField, inner: (desc: DescMessage) => JsonObject): Json {
  if (field.message) {
    switch (field.message.typeName) {
      case "google.protobuf.Timestamp":
        return time;
      case "google.protobuf.Struct":
        return {};
      default:
        return inner(field.message);
    }
  }
  if (field.enum) return [...enumNames(field.enum).values()][0] ?? null;
  switch (field.scalar) {
    case ScalarType.STRING:
      return idOf(field) ?? "text".padEnd(constraintsOf(getOption(field, fieldRules)).minLength ?? 0, "-text");
    case ScalarType.BYTES:
      return "";
    case ScalarType.BOOL:
      return false;
    default:
      return 0;
  }
}

function wrap(field: DescField, value: Json): Json {
  return field.fieldKind === "list" ? [value] : field.fieldKind === "map" ? { name: value } : value;
}
