import { setImmediate as yieldToEventLoop } from "node:timers/promises";

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const comma = 0x2c;
/**
 * Kinds of bytes outside strings. `plain` bytes are separators, or parts of numbers and literals. `bad` bytes are not
 * JSON. Comments are `bad` too, although the browser accepts them.
 */
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

/** Next expected token of the object. */
type Awaited = "name" | "colon" | "value" | "rest of value" | "end of value" | "nothing";

/** Bytes scanned before yielding to the event loop. The worst case, only brackets, takes 3 ms. */
const sliceBytes = 256 * 1024;

/**
 * Returns the members of a JSON object without parsing their values: skips strings and counts brackets. Values are
 * balanced but may be invalid JSON. Returns undefined if the input is not an object.
 */
export function scanMembers(bytes: Buffer): Promise<Map<string, Buffer> | undefined> {
  return new MemberScan(bytes).run();
}

class MemberScan {
  readonly #bytes: Buffer;
  readonly #members = new Map<string, Buffer>();
  #awaited: Awaited = "value";
  #depth = 0;
  #name = "";
  #valueAt = 0;
  /** Start of the current string, if the position is within a string. */
  #textAt: number | undefined;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  async run(): Promise<Map<string, Buffer> | undefined> {
    for (let at: number | undefined = 0; at < this.#bytes.length; await yieldToEventLoop()) {
      at = this.#slice(at, Math.min(this.#bytes.length, at + sliceBytes));
      if (at === undefined) return undefined;
    }
    return this.#awaited === "nothing" ? this.#members : undefined;
  }

  /**
   * Scans to `until`, or to the next quote if `until` is within a string. Returns the next position, or undefined for
   * invalid input.
   */
  #slice(from: number, until: number): number | undefined {
    let at: number | undefined = from;
    while (at !== undefined && at < until) {
      const byte = this.#bytes[at] ?? 0;
      const kind = kinds[byte] ?? bad;
      if (this.#textAt !== undefined) {
        at = this.#passText(this.#textAt, at, until);
      } else if (byte === quote) {
        this.#textAt = at;
        at += 1;
      } else if (kind === space || (kind === plain && this.#depth > 1)) {
        at += 1;
      } else {
        at = this.#step(byte, kind, at);
      }
    }
    return at;
  }

  /** Handles a byte outside strings. Returns the next position, or undefined for invalid input. */
  #step(byte: number, kind: number, at: number): number | undefined {
    if (kind === opening) return this.#open(byte, at);
    if (kind === closing) return this.#close(at);
    return kind === plain && this.#between(byte, at) ? at + 1 : undefined;
  }

  #open(byte: number, at: number): number | undefined {
    if (this.#depth < 2 && this.#awaited !== "value") return undefined;
    if (this.#depth === 0) {
      if (byte !== 0x7b) return undefined;
      this.#awaited = "name";
    }
    this.#depth += 1;
    return at + 1;
  }

  #close(at: number): number | undefined {
    this.#depth -= 1;
    if (this.#depth < 0) return undefined;
    if (this.#depth === 1) this.#awaited = "end of value";
    if (this.#depth === 0) {
      if (!this.#endMember(at)) return undefined;
      this.#awaited = "nothing";
    }
    return at + 1;
  }

  /** Handles a separator, or a byte of a number or literal. Returns whether the byte was expected. */
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

  /** Scans for the end of a string. Returns the next position, or undefined for invalid input. */
  #passText(textAt: number, from: number, until: number): number | undefined {
    for (let at = this.#bytes.indexOf(quote, from); at >= 0; at = this.#bytes.indexOf(quote, at + 1)) {
      if (!isEscaped(this.#bytes, at)) return this.#takeText(textAt, at) ? at + 1 : undefined;
      if (at >= until) return at + 1;
    }
    return undefined;
  }

  /** Handles a complete string. Returns whether a string was expected. */
  #takeText(from: number, end: number): boolean {
    this.#textAt = undefined;
    if (this.#depth > 1) return true;
    if (this.#depth === 0) return false;
    if (this.#awaited === "name") {
      // Escapes in member names stay encoded: no known name needs escapes.
      this.#name = this.#bytes.toString("utf8", from + 1, end);
      this.#awaited = "colon";
      return true;
    }
    const isExpected = this.#awaited === "value";
    this.#awaited = "end of value";
    return isExpected;
  }

  #endMember(at: number): boolean {
    if (this.#awaited === "name") return this.#members.size === 0;
    this.#members.set(this.#name, this.#bytes.subarray(this.#valueAt, at));
    return this.#awaited === "end of value" || this.#awaited === "rest of value";
  }
}

function isEscaped(bytes: Buffer, at: number): boolean {
  let slashes = 0;
  while (bytes[at - 1 - slashes] === backslash) slashes += 1;
  return slashes % 2 === 1;
}
