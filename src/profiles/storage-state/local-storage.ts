import { type LevelDbFiles, readLevelDb } from "./leveldb-reader.ts";
import { type LevelDbEntry, writeLevelDb } from "./leveldb-writer.ts";

/** localStorage items of an origin. */
export interface OriginStorage {
  readonly origin: string;
  readonly localStorage: readonly { readonly name: string; readonly value: string }[];
}

/** Version of Chromium's localStorage database. */
const schemaVersion: LevelDbEntry = [Buffer.from("VERSION"), Buffer.from("1")];

/** Prefixes of keys: `_<origin>\0<name>` for an item, `META:<origin>` for an origin. */
const itemMark = "_";
const metaMark = "META:";

/** First byte of stored strings. */
const encodings = { utf16: 0, latin1: 1 };

/** Microseconds between 1601, from which Chromium counts, and 1970. */
const epochOffset = 11_644_473_600_000_000n;

/**
 * Reads the localStorage of all origins. Skips partitioned storage, which belongs to an origin embedded in another
 * site.
 */
export function readLocalStorage(files: LevelDbFiles): OriginStorage[] {
  const origins = new Map<string, { name: string; value: string }[]>();
  for (const [key, value] of readLevelDb(files)) {
    const end = key.indexOf("\0");
    const origin = key.slice(itemMark.length, end);
    if (!key.startsWith(itemMark) || end < 0 || origin.includes("^")) continue;
    const items = origins.get(origin) ?? [];
    origins.set(origin, items);
    items.push({ name: decode(Buffer.from(key.slice(end + 1), "latin1")), value: decode(value) });
  }
  return [...origins].map(([origin, localStorage]) => ({ origin, localStorage }));
}

/** Writes the files of a localStorage database. `now` is in milliseconds since 1970. */
export function writeLocalStorage(origins: readonly OriginStorage[], now: number): Map<string, Buffer> {
  const entries: LevelDbEntry[] = [schemaVersion];
  for (const { origin, localStorage } of origins) {
    const items = localStorage.map(({ name, value }): LevelDbEntry => {
      return [Buffer.concat([Buffer.from(`${itemMark}${origin}\0`, "latin1"), encode(name)]), encode(value)];
    });
    const bytes = items.reduce((sum, [key, value]) => sum + key.length + value.length, 0);
    entries.push([Buffer.from(metaMark + origin, "latin1"), writeMeta(now, bytes)], ...items);
  }
  return writeLevelDb(entries);
}

/** Encodes Chromium's message about an origin: time of the last change (field 1), and size in bytes (field 2). */
function writeMeta(now: number, bytes: number): Buffer {
  return Buffer.concat([
    Buffer.from([1 << 3]),
    varint(BigInt(Math.round(now)) * 1_000n + epochOffset),
    Buffer.from([2 << 3]),
    varint(BigInt(bytes)),
  ]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  return Buffer.from([...bytes, Number(left)]);
}

function decode(bytes: Buffer): string {
  const [encoding] = bytes;
  if (encoding === encodings.latin1) return bytes.toString("latin1", 1);
  return bytes.toString("utf16le", 1);
}

function encode(text: string): Buffer {
  const isLatin1 = !/[^\0-\xff]/.test(text);
  return Buffer.concat([
    Buffer.from([isLatin1 ? encodings.latin1 : encodings.utf16]),
    Buffer.from(text, isLatin1 ? "latin1" : "utf16le"),
  ]);
}
