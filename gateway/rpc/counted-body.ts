import type { ServedMethod } from "../../src/kernel/registry.ts";
import { longestMessage } from "../message-size.ts";
import { boundsOf, fieldsBeyond, keysBeyond } from "../unread-messages.ts";

/** Bytes before each message in an envelope: its flags and length. */
const prefixBytes = 5;

interface CountedBodyOptions {
  readonly served: ServedMethod;
  readonly contentType: string;
  /** Called with the number of bytes held of an unfinished stream message. */
  hold(bytes: number): void;
  /** Waits until a message of this size may be parsed. */
  awaitAllowance(bytes: number): Promise<void> | undefined;
  /** Creates the error for a message with too many keys, elements or fields. */
  toError(excess: string): Error;
}

type Body = AsyncIterable<Uint8Array>;

/**
 * Yields the body of a Connect, gRPC-Web or gRPC request message by message. Before Connect parses a message, its keys
 * and elements, or its fields, are counted; too many throw the error of `toError`. A message above the size limit is
 * passed on uncounted, and Connect refuses it.
 */
export function countedBody(
  body: Body,
  { served, contentType, hold, awaitAllowance, toError }: CountedBodyOptions,
): Body {
  const longest = longestMessage(served);
  const bounds = boundsOf(served);
  const isJson = contentType.endsWith("json");
  const count = async (message: Buffer): Promise<void> => {
    await awaitAllowance(message.length);
    // Structural characters of JSON are single bytes in UTF-8.
    const excess = isJson
      ? keysBeyond(message.toString("latin1"), bounds)
      : fieldsBeyond(served.method.input, message, bounds);
    if (excess !== undefined) throw toError(excess);
  };
  const inEnvelopes = /^application\/(grpc|connect\+)/.test(contentType);
  return inEnvelopes ? countedEnvelopes(body, longest, count, hold) : countedWhole(body, longest, count);
}

async function* countedWhole(body: Body, longest: number, count: (message: Buffer) => Promise<void>): Body {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    parts.push(chunk);
    if (size > longest) yield* parts.splice(0);
  }
  if (parts.length === 0) return;
  const message = Buffer.concat(parts);
  await count(message);
  yield message;
}

async function* countedEnvelopes(
  body: Body,
  longest: number,
  count: (message: Buffer) => Promise<void>,
  hold: (bytes: number) => void,
): Body {
  let parts: Uint8Array[] = [];
  let size = 0;
  let needed = prefixBytes;
  let isPassedOn = false;
  for await (const chunk of body) {
    if (isPassedOn) {
      yield chunk;
      continue;
    }
    parts.push(chunk);
    size += chunk.length;
    while (size >= needed) {
      const all = joined(parts);
      const length = all.readUInt32BE(1);
      if (length > longest) {
        yield all;
        isPassedOn = true;
        size = 0;
        break;
      }
      parts = [all];
      needed = prefixBytes + length;
      if (size < needed) break;
      await count(all.subarray(prefixBytes, needed));
      yield all.subarray(0, needed);
      parts = [all.subarray(needed)];
      size -= needed;
      needed = prefixBytes;
    }
    hold(size);
  }
  if (size > 0) yield Buffer.concat(parts);
}

/** Joins parts to one buffer. A single part is not copied, since it may contain thousands of messages. */
function joined(parts: readonly Uint8Array[]): Buffer {
  const [first] = parts;
  if (first === undefined || parts.length > 1) return Buffer.concat(parts);
  return Buffer.from(first.buffer, first.byteOffset, first.byteLength);
}
