/** Step: bytes to send, a pause in milliseconds (which ends a TCP segment), or a wait for a response. */
export type Step = Buffer | number | "answer";

export interface Case {
  readonly name: string;
  readonly steps: readonly Step[];
  /** How the client leaves: it waits for the server, ends its side, or resets the connection. */
  readonly leave: "wait" | "end" | "reset";
}

/** Seeded random generator. */
export interface Random {
  /** Returns an integer from 0 to `limit` - 1. */
  below(limit: number): number;
  pick<T>(list: readonly T[]): T;
  bytes(length: number): Buffer;
}

/** Creates a Mulberry32 generator. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const below = (limit: number): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
  return {
    below,
    pick: (list) => list[below(list.length)] as (typeof list)[number],
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  };
}

/** Encodes a text with one byte per character. */
export const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");

/** Returns an HTTP/1.1 request. Each item of `headers` is a line. */
export function http1(line: string, headers: readonly string[], body: string | Buffer = ""): Buffer {
  const head = latin1([line, ...headers, "", ""].join("\r\n"));
  return Buffer.concat([head, typeof body === "string" ? latin1(body) : body]);
}

/** Returns one chunk of a chunked body. */
export function chunk(body: Buffer): Buffer {
  return Buffer.concat([latin1(`${body.length.toString(16)}\r\n`), body, latin1("\r\n")]);
}

/** Returns an HTTP/2 frame. `length` overrides the declared length. */
export function frame(type: number, flags: number, id: number, body: Buffer | number[] = [], length?: number): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length ?? body.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id >>> 0, 5);
  return Buffer.concat([head, Buffer.from(body)]);
}

/** Encodes a length as an HPACK integer of 7 bits (RFC 7541, section 5.1). */
function hpackLength(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

export type Fields = readonly (readonly [name: string, value: string])[];

/** Returns a header block of literal fields without indexing. */
export function hpack(fields: Fields): Buffer {
  const text = (value: string): Buffer => Buffer.concat([hpackLength(value.length), latin1(value)]);
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** Returns a big-endian integer of 4 bytes. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** Returns a gRPC or Connect message with its prefix. `length` overrides the declared length. */
export function envelope(flags: number, body: Buffer | string, length?: number): Buffer {
  const bytes = typeof body === "string" ? latin1(body) : body;
  return Buffer.concat([Buffer.from([flags]), uint32(length ?? bytes.length), bytes]);
}

interface FrameFaults {
  readonly unmasked?: boolean;
  /** Declared length, encoded in 64 bits. */
  readonly length?: bigint;
}

/** Returns a client's WebSocket frame. `first` holds FIN, RSV and the opcode. The zero mask keeps the body readable. */
export function webSocketFrame(first: number, body: Buffer | string, { unmasked, length }: FrameFaults = {}): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const mask = unmasked ? 0 : 0x80;
  const size = Buffer.alloc(length !== undefined ? 8 : bytes.length < 126 ? 0 : 2);
  if (length !== undefined) size.writeBigUInt64BE(length);
  else if (size.length === 2) size.writeUInt16BE(bytes.length);
  const code = length !== undefined ? 127 : Math.min(bytes.length, 126);
  return Buffer.concat([Buffer.from([first, mask | code]), size, Buffer.alloc(unmasked ? 0 : 4), bytes]);
}
