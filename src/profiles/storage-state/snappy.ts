import { ByteReader } from "./byte-reader.ts";

/** Decompresses Snappy's raw format. Throws if the input is malformed or the output would exceed `longest` bytes. */
export function decompressSnappy(compressed: Buffer, longest: number): Buffer {
  const input = new ByteReader(compressed);
  const length = input.varint();
  if (length > longest) throw new Error(`expected a block of at most ${longest} bytes, got ${length}`);
  const output = Buffer.alloc(length);
  let at = 0;
  while (input.left > 0) {
    const tag = input.byte();
    const kind = tag & 3;
    if (kind === 0) {
      const literal = input.bytes(literalLength(tag >> 2, input));
      if (at + literal.length > length) throw new Error(`expected a block of ${length} bytes, got more`);
      at += literal.copy(output, at);
      continue;
    }
    const count = kind === 1 ? 4 + ((tag >> 2) & 7) : 1 + (tag >> 2);
    const offset = kind === 1 ? ((tag >> 5) << 8) | input.byte() : littleEndian(input.bytes(kind === 2 ? 2 : 4));
    if (offset === 0 || offset > at || at + count > length)
      throw new Error(`expected a copy within ${at} of ${length} bytes, got ${count} bytes from offset -${offset}`);
    // The source may overlap the target, so bytes are copied one by one.
    for (let copied = 0; copied < count; copied += 1, at += 1) output[at] = output[at - offset] ?? 0;
  }
  if (at !== length) throw new Error(`expected a block of ${length} bytes, got ${at}`);
  return output;
}

function literalLength(code: number, input: ByteReader): number {
  return 1 + (code < 60 ? code : littleEndian(input.bytes(code - 59)));
}

function littleEndian(bytes: Buffer): number {
  return bytes.readUIntLE(0, bytes.length);
}
