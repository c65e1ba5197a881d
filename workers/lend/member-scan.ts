const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const comma = 0x2c;
/** What a byte outside texts is. All others are no JSON; comments, which the browser's reader would take, are not either. */
const bad = 0;
const space = 1;
const plain = 2;
const opening = 3;
const closing = 4;
const kinds = new Uint8Array(256);
for (const [characters, kind] of [
  [" \t\r\n", space],
  [`":,0123456789+-.eEtrufalsn`, plain],
  ["{[", opening],
  ["}]", closing],
] as const) {
  for (const byte of Buffer.from(characters)) kinds[byte] = kind;
}

/** What may come next between the members of the object. */
type Awaited = "name" | "colon" | "value" | "rest of value" | "end of value" | "nothing";

/**
 * Finds the members of a JSON object without looking into them: texts are skipped, brackets counted. What is found is
 * balanced, though it may be no JSON. Undefined for what is no object.
 */
export function scanMembers(bytes: Buffer): Map<string, Buffer> | undefined {
  return new MemberScan(bytes).run();
}

class MemberScan {
  readonly #bytes: Buffer;
  readonly #members = new Map<string, Buffer>();
  #awaited: Awaited = "value";
  #depth = 0;
  #name = "";
  #valueAt = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  run(): Map<string, Buffer> | undefined {
    for (let at = 0; at < this.#bytes.length; at += 1) {
      const byte = this.#bytes[at] ?? 0;
      const kind = kinds[byte] ?? bad;
      if (kind === space || (kind === plain && this.#depth > 1 && byte !== quote)) continue;
      const next = byte === quote ? this.#text(at) : this.#step(byte, kind, at);
      if (next === undefined) return undefined;
      at = next;
    }
    return this.#awaited === "nothing" ? this.#members : undefined;
  }

  /** Takes what is no text; gives where it ends. */
  #step(byte: number, kind: number, at: number): number | undefined {
    if (kind === opening) return this.#open(byte, at);
    if (kind === closing) return this.#close(at);
    return kind === plain && this.#between(byte, at) ? at : undefined;
  }

  #open(byte: number, at: number): number | undefined {
    if (this.#depth < 2 && this.#awaited !== "value") return undefined;
    if (this.#depth === 0) {
      if (byte !== 0x7b) return undefined;
      this.#awaited = "name";
    }
    this.#depth += 1;
    return at;
  }

  #close(at: number): number | undefined {
    this.#depth -= 1;
    if (this.#depth < 0) return undefined;
    if (this.#depth === 1) this.#awaited = "end of value";
    if (this.#depth === 0) {
      if (!this.#endMember(at)) return undefined;
      this.#awaited = "nothing";
    }
    return at;
  }

  /** Takes a byte between the members, or of a number or a word. */
  #between(byte: number, at: number): boolean {
    if (byte === colon) {
      this.#valueAt = at + 1;
      const isExpected = this.#awaited === "colon";
      this.#awaited = "value";
      return isExpected;
    }
    if (byte === comma) {
      const isExpected = this.#awaited !== "name" && this.#endMember(at);
      this.#awaited = "name";
      return isExpected;
    }
    const isExpected = this.#depth === 1 && (this.#awaited === "value" || this.#awaited === "rest of value");
    this.#awaited = "rest of value";
    return isExpected;
  }

  /** Takes a text; gives where it ends. */
  #text(at: number): number | undefined {
    const end = endOfText(this.#bytes, at);
    if (end === undefined || this.#depth > 1) return end;
    if (this.#depth === 0) return undefined;
    if (this.#awaited === "name") {
      // Names with escapes are none that anybody looks for.
      this.#name = this.#bytes.toString("utf8", at + 1, end);
      this.#awaited = "colon";
      return end;
    }
    const isExpected = this.#awaited === "value";
    this.#awaited = "end of value";
    return isExpected ? end : undefined;
  }

  #endMember(at: number): boolean {
    if (this.#awaited === "name") return this.#members.size === 0;
    this.#members.set(this.#name, this.#bytes.subarray(this.#valueAt, at));
    return this.#awaited === "end of value" || this.#awaited === "rest of value";
  }
}

/** Where a text ends that begins at a quotation mark. */
function endOfText(bytes: Buffer, from: number): number | undefined {
  for (let at = bytes.indexOf(quote, from + 1); at >= 0; at = bytes.indexOf(quote, at + 1)) {
    let slashes = 0;
    while (bytes[at - 1 - slashes] === backslash) slashes += 1;
    if (slashes % 2 === 0) return at;
  }
  return undefined;
}
