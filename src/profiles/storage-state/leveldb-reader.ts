import { ByteReader } from "./byte-reader.ts";
import { decompressSnappy } from "./snappy.ts";

/** Files of a LevelDB database by name. */
export type LevelDbFiles = ReadonlyMap<string, Buffer>;

/** Newest version of a key; without a value, the key is deleted. */
interface Version {
  readonly sequence: bigint;
  readonly value: Buffer | undefined;
}

/** Maximum bytes of a decompressed block, and of all blocks together. Blocks usually have 4 KiB. */
const longest = { block: 16 * 2 ** 20, all: 256 * 2 ** 20 };

const logBlock = 32_768;
const logHeader = 7;
/** Types of log records: a complete record, or the first, a middle or the last part of a longer record. */
const part = { full: 1, first: 2, middle: 3, last: 4 };

/** Tags of those manifest entries that the reader uses. */
const editTag = { log: 2, deletedTable: 6, newTable: 7 };
/** Fields of manifest entries by tag. Entries for tables start with a level and a number. */
const editFields: Readonly<Record<number, readonly ("varint" | "sized")[]>> = {
  1: ["sized"],
  2: ["varint"],
  3: ["varint"],
  4: ["varint"],
  5: ["varint", "sized"],
  6: ["varint", "varint"],
  7: ["varint", "varint", "varint", "sized", "sized"],
  9: ["varint"],
};

const footerLength = 48;
const tableMagic = 0xdb4775248b80fb57n;
/** Bytes after each block: 1 byte for the compression, 4 bytes for the checksum. */
const blockTrailer = 5;
const compression = { none: 0, snappy: 1 };

/**
 * Reads all entries of a LevelDB database (github.com/google/leveldb, doc/log_format.md and doc/table_format.md). Keys
 * are Latin-1 strings of their bytes. The content comes from a browser that ran hostile pages, so all lengths are
 * checked against the size of the files. Checksums are ignored. The newest log may end within a record.
 */
export function readLevelDb(files: LevelDbFiles): Map<string, Buffer> {
  return new LevelDbReader(files).read();
}

class LevelDbReader {
  readonly #files: LevelDbFiles;
  readonly #newest = new Map<string, Version>();
  #decompressed = 0;

  constructor(files: LevelDbFiles) {
    this.#files = files;
  }

  read(): Map<string, Buffer> {
    const current = this.#files.get("CURRENT");
    if (!current) return new Map();
    const { tables, oldestLog } = this.#readManifest(current.toString("latin1").trim());
    for (const number of tables) this.#readTable(number);
    for (const [name, content] of this.#files) {
      const [, number = "-1"] = /^(\d+)\.log$/.exec(name) ?? [];
      if (Number(number) < oldestLog) continue;
      for (const batch of readLog(content)) this.#readBatch(batch);
    }
    const entries = [...this.#newest].flatMap(([key, { value }]) => (value ? [[key, value] as const] : []));
    return new Map(entries);
  }

  /** Returns the numbers of the tables in use, and of the oldest log in use. */
  #readManifest(name: string): { readonly tables: ReadonlySet<number>; readonly oldestLog: number } {
    const manifest = this.#files.get(name);
    if (!manifest) throw new Error(`expected the manifest ${JSON.stringify(name.slice(0, 64))}, got no such file`);
    const tables = new Set<number>();
    let oldestLog = 0;
    for (const record of readLog(manifest)) {
      const edit = new ByteReader(record);
      while (edit.left > 0) {
        const tag = edit.varint();
        const fields = editFields[tag]?.map((field) => edit[field]());
        if (!fields) throw new Error(`expected a known manifest tag, got ${tag}`);
        const [first, second] = fields.map(Number);
        if (tag === editTag.log) oldestLog = first ?? 0;
        else if (tag === editTag.deletedTable) tables.delete(second ?? 0);
        else if (tag === editTag.newTable) tables.add(second ?? 0);
      }
    }
    return { tables, oldestLog };
  }

  #readTable(number: number): void {
    const padded = String(number).padStart(6, "0");
    const table = this.#files.get(`${padded}.ldb`) ?? this.#files.get(`${padded}.sst`);
    if (!table || table.length < footerLength)
      throw new Error(
        `expected table ${number} with at least ${footerLength} bytes, got ${table?.length ?? "no file"}`,
      );
    const footer = new ByteReader(table, table.length - footerLength);
    const magic = table.readBigUInt64LE(table.length - 8);
    if (magic !== tableMagic)
      throw new Error(`expected the magic number ${tableMagic} in table ${number}, got ${magic}`);
    footer.varint();
    footer.varint();
    const index = this.#block(table, footer.varint(), footer.varint());
    for (const { value } of blockEntries(index)) {
      const handle = new ByteReader(value);
      for (const entry of blockEntries(this.#block(table, handle.varint(), handle.varint()))) {
        const keyLength = entry.key.length - 8;
        if (keyLength < 0) throw new Error(`expected a key of at least 8 bytes, got ${entry.key.length}`);
        const trailer = entry.key.readBigUInt64LE(keyLength);
        const isValue = (trailer & 0xffn) === 1n;
        this.#note(entry.key.subarray(0, keyLength), trailer >> 8n, isValue ? entry.value : undefined);
      }
    }
  }

  #block(table: Buffer, offset: number, length: number): Buffer {
    const block = new ByteReader(table, Math.min(offset, table.length)).bytes(length + blockTrailer);
    const content = block.subarray(0, length);
    const type = block.readUInt8(length);
    if (type !== compression.none && type !== compression.snappy)
      throw new Error(`expected block compression 0 or 1, got ${type}`);
    const bytes = type === compression.snappy ? decompressSnappy(content, longest.block) : content;
    this.#decompressed += bytes.length;
    if (this.#decompressed > longest.all)
      throw new Error(`expected at most ${longest.all} decompressed bytes, got more`);
    return bytes;
  }

  /** Reads a write batch: a sequence number, a count, and that many changes. */
  #readBatch(batch: Buffer): void {
    const changes = new ByteReader(batch);
    let sequence = changes.bytes(8).readBigUInt64LE();
    changes.bytes(4);
    while (changes.left > 0) {
      const isValue = changes.byte() === 1;
      const key = changes.sized();
      this.#note(key, sequence, isValue ? changes.sized() : undefined);
      sequence += 1n;
    }
  }

  #note(key: Buffer, sequence: bigint, value: Buffer | undefined): void {
    const name = key.toString("latin1");
    const known = this.#newest.get(name);
    if (!known || known.sequence <= sequence) this.#newest.set(name, { sequence, value });
  }
}

/** Yields the records of a log. Stops at the first record that is incomplete or invalid. */
function* readLog(log: Buffer): Generator<Buffer, void, undefined> {
  let parts: Buffer[] = [];
  for (let at = 0; at + logHeader <= log.length; ) {
    const blockLeft = logBlock - (at % logBlock);
    if (blockLeft < logHeader) {
      at += blockLeft;
      continue;
    }
    const length = log.readUInt16LE(at + 4);
    const type = log.readUInt8(at + 6);
    const end = at + logHeader + length;
    if (type < part.full || type > part.last || end > log.length || logHeader + length > blockLeft) return;
    if (type === part.full || type === part.first) parts = [];
    parts.push(log.subarray(at + logHeader, end));
    if (type === part.full || type === part.last) yield Buffer.concat(parts);
    at = end;
  }
}

/** Yields the entries of a block. Stored keys omit the prefix that they share with the previous key. */
function* blockEntries(block: Buffer): Generator<{ readonly key: Buffer; readonly value: Buffer }, void, undefined> {
  if (block.length < 4) throw new Error(`expected a block of at least 4 bytes, got ${block.length}`);
  const end = block.length - 4 - 4 * block.readUInt32LE(block.length - 4);
  if (end < 0) throw new Error(`expected the restart points of a block within its ${block.length} bytes, got more`);
  const entries = new ByteReader(block.subarray(0, end));
  let key = Buffer.alloc(0);
  while (entries.left > 0) {
    const [shared, own, length] = [entries.varint(), entries.varint(), entries.varint()];
    if (shared > key.length) throw new Error(`expected a shared prefix of at most ${key.length} bytes, got ${shared}`);
    key = Buffer.concat([key.subarray(0, shared), entries.bytes(own)]);
    yield { key, value: entries.bytes(length) };
  }
}
