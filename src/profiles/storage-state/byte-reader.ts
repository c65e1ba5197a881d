/** Reads numbers and bytes in sequence. Throws if a read exceeds the end. */
export class ByteReader {
  readonly #bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes;
    this.at = at;
  }

  get left(): number {
    return this.#bytes.length - this.at;
  }

  bytes(length: number): Buffer {
    if (length > this.left) throw new Error(`expected ${length} more bytes, got ${this.left}`);
    this.at += length;
    return this.#bytes.subarray(this.at - length, this.at);
  }

  byte(): number {
    return this.bytes(1).readUInt8();
  }

  /** Reads a variable-length integer of at most 8 bytes, with 7 bits per byte. */
  varint(): number {
    let value = 0;
    for (let factor = 1; factor <= 2 ** 49; factor *= 128) {
      const byte = this.byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    throw new Error("expected a number of at most 8 bytes, got a longer one");
  }

  /** Reads bytes preceded by their length. */
  sized(): Buffer {
    return this.bytes(this.varint());
  }
}
