import { type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { ServedMethod } from "../src/kernel/registry.ts";
import { failFields } from "../src/platform/errors.ts";
import { bodyBounds, excessOf, type JsonBounds, messageBounds } from "../src/platform/rest-json/parse.ts";
import type { UnreadMessage } from "./policies/conversation.ts";

/** Returns the limits on keys and elements of a method's messages, in either encoding. */
export const boundsOf = ({ kind }: ServedMethod): JsonBounds =>
  kind === "bidi_streaming" ? messageBounds : bodyBounds;

/** Yields the messages of a client stream unparsed. Each message is parsed after its tokens are drawn. */
export async function* unread(requests: AsyncIterable<unknown>, desc: DescMessage): AsyncGenerator<UnreadMessage> {
  for await (const bytes of requests) {
    const unparsed = asBytes(bytes);
    yield { bytes: unparsed.length, read: () => readMessage(desc, unparsed, messageBounds) };
  }
}

/** Casts an unparsed message to its bytes. Throws if the message is parsed. */
export function asBytes(message: unknown): Uint8Array {
  if (!(message instanceof Uint8Array)) throw new Error("expected an unparsed message, got a parsed one");
  return message;
}

/** Parses a binary protobuf message. Throws `bad-request` if it is malformed or has too many fields. */
export function readMessage(desc: DescMessage, bytes: Uint8Array, bounds: JsonBounds): ReturnType<typeof fromBinary> {
  const excess = fieldsBeyond(desc, bytes, bounds);
  if (excess !== undefined) throw failFields("bad-request", { message: excess });
  try {
    return fromBinary(desc, bytes);
  } catch {
    throw failFields("bad-request", { message: "cannot be read" });
  }
}

/** Returns the fault of a JSON message with too many keys or elements, if any. */
export function keysBeyond(text: string, bounds: JsonBounds): string | undefined {
  const excess = excessOf(text, bounds);
  return excess && `has more than ${excess}`;
}

/**
 * Returns the fault of a binary protobuf message with more fields, including nested fields, than the bounds of JSON
 * allow keys and elements together. Each field costs about 100 ns to parse.
 */
export function fieldsBeyond(desc: DescMessage, bytes: Uint8Array, bounds: JsonBounds): string | undefined {
  const max = bounds.keys + bounds.elements;
  // A field has at least two bytes.
  if (bytes.length <= 2 * max) return undefined;
  try {
    const reader = new BinaryReader(bytes);
    return countFields(nestedIn(desc), reader, reader.len, 0, max) > max ? `has more than ${max} fields` : undefined;
  } catch {
    // A message that cannot be counted cannot be parsed either, and the parser reports the fault.
    return undefined;
  }
}

/** Returns the fields of a message whose values are messages, by field number. */
type Nested = () => ReadonlyMap<number, Nested>;

/**
 * Counts the fields up to `end`, starting from `before`, and stops at `max + 1`. Unknown fields count, but their
 * contents do not.
 */
function countFields(
  nested: ReturnType<Nested>,
  reader: BinaryReader,
  end: number,
  before: number,
  max: number,
): number {
  let count = before;
  while (reader.pos < end && count <= max) {
    const [number, type] = reader.tag();
    count += 1;
    const inner = type === WireType.LengthDelimited ? nested.get(number) : undefined;
    if (inner) count = countFields(inner(), reader, reader.uint32() + reader.pos, count, max);
    else reader.skip(type, number);
  }
  return count;
}

const known = new WeakMap<DescMessage, ReturnType<Nested>>();

function nestedIn(desc: DescMessage): ReturnType<Nested> {
  const fields = known.get(desc) ?? new Map(desc.fields.flatMap(nestedOf));
  known.set(desc, fields);
  return fields;
}

function nestedOf({ fieldKind, message, number }: DescMessage["fields"][number]): [number, Nested][] {
  const nested = message && (() => nestedIn(message));
  if (fieldKind !== "map") return nested ? [[number, nested]] : [];
  // A map entry is a message whose value is field 2.
  const entry = new Map(nested && [[2, nested]]);
  return [[number, () => entry]];
}
