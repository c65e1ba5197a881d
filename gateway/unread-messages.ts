import { type DescField, type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { failFields } from "../src/platform/errors.ts";
import type { UnreadMessage } from "./policies/conversation.ts";

/** The most fields that a message of a stream may have, with those of the messages in it: each costs 100 ns to parse. */
const mostFields = 2_000;

/** Returns the messages of a client stream, given as bytes, each to be parsed when that was paid for. */
export async function* unread(requests: AsyncIterable<unknown>, desc: DescMessage): AsyncGenerator<UnreadMessage> {
  for await (const bytes of requests) {
    if (!(bytes instanceof Uint8Array)) throw new Error("the message of a stream was parsed before it was handed on");
    yield { bytes: bytes.length, read: () => readMessage(desc, bytes) };
  }
}

/** Parses a message in protobuf's encoding. Throws `bad-request` if it cannot be read, or has too many fields. */
export function readMessage(desc: DescMessage, bytes: Uint8Array): ReturnType<typeof fromBinary> {
  try {
    const reader = new BinaryReader(bytes);
    if (countFields(desc, reader, reader.len, 0) <= mostFields) return fromBinary(desc, bytes);
  } catch {
    throw failFields("bad-request", { message: "cannot be read" });
  }
  throw failFields("bad-request", { message: `has more than ${mostFields} fields` });
}

/** Counts the fields up to `end`, as far as `mostFields` and one. Unknown ones count, and are not looked into. */
function countFields(desc: DescMessage, reader: BinaryReader, end: number, before: number): number {
  let count = before;
  const byNumber = fieldsOf(desc);
  while (reader.pos < end && count <= mostFields) {
    const [number, type] = reader.tag();
    count += 1;
    const inner = type === WireType.LengthDelimited ? byNumber.get(number)?.message : undefined;
    if (inner) count = countFields(inner, reader, reader.uint32() + reader.pos, count);
    else reader.skip(type, number);
  }
  return count;
}

const known = new WeakMap<DescMessage, ReadonlyMap<number, DescField>>();

function fieldsOf(desc: DescMessage): ReadonlyMap<number, DescField> {
  const fields = known.get(desc) ?? new Map(desc.fields.map((field) => [field.number, field]));
  known.set(desc, fields);
  return fields;
}
