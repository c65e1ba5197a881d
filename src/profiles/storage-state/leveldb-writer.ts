export type LevelDbEntry = readonly [key: Buffer, value: Buffer];

const logBlock = 32_768;
const logHeader = 7;

/** Entries per write batch. A batch is in memory twice while it is written. */
const batchEntries = 1_000;

/** Numbers of the only log and of the next file. */
const logNumber = 2;
const nextFile = 3;

/**
 * Writes a LevelDB database with these entries (github.com/google/leveldb, doc/log_format.md). All entries are in the
 * log, from which the browser creates tables when it opens the database.
 */
export function writeLevelDb(entries: readonly LevelDbEntry[]): Map<string, Buffer> {
  const edit = Buffer.concat([
    varints(1),
    sized(Buffer.from("leveldb.BytewiseComparator")),
    varints(2, logNumber, 9, 0, 3, nextFile, 4, 0),
  ]);
  const batches: Buffer[] = [];
  for (let at = 0; at < entries.length; at += batchEntries)
    batches.push(writeBatch(entries.slice(at, at + batchEntries), at + 1));
  return new Map([
    ["CURRENT", Buffer.from("MANIFEST-000001\n")],
    ["MANIFEST-000001", writeLog([edit])],
    ["000002.log", writeLog(batches)],
  ]);
}

function writeBatch(entries: readonly LevelDbEntry[], sequence: number): Buffer {
  const head = Buffer.alloc(12);
  head.writeBigUInt64LE(BigInt(sequence));
  head.writeUInt32LE(entries.length, 8);
  const put = Buffer.from([1]);
  return Buffer.concat([head, ...entries.flatMap(([key, value]) => [put, sized(key), sized(value)])]);
}

/** Encodes records as a log. Splits records at the boundaries of the log's blocks. */
function writeLog(records: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  let blockLeft = logBlock;
  for (const record of records) {
    let at = 0;
    do {
      if (blockLeft < logHeader) {
        parts.push(Buffer.alloc(blockLeft));
        blockLeft = logBlock;
      }
      const content = record.subarray(at, at + blockLeft - logHeader);
      const isFirst = at === 0;
      at += content.length;
      const isLast = at === record.length;
      const type = isFirst ? (isLast ? 1 : 2) : isLast ? 4 : 3;
      parts.push(recordHeader(type, content), content);
      blockLeft -= logHeader + content.length;
    } while (at < record.length);
  }
  return Buffer.concat(parts);
}

function recordHeader(type: number, content: Buffer): Buffer {
  const header = Buffer.alloc(logHeader);
  const crc = crc32c(Buffer.concat([Buffer.from([type]), content]));
  // LevelDB masks checksums, because a checksum of data with checksums is weak.
  header.writeUInt32LE((((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0);
  header.writeUInt16LE(content.length, 4);
  header.writeUInt8(type, 6);
  return header;
}

function sized(bytes: Buffer): Buffer {
  return Buffer.concat([varints(bytes.length), bytes]);
}

function varints(...values: readonly number[]): Buffer {
  const bytes: number[] = [];
  for (let value of values) {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
    bytes.push(value);
  }
  return Buffer.from(bytes);
}

/** Table of CRC-32C (Castagnoli), which Node.js does not have. */
const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc >>> 0;
});

function crc32c(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crcTable[(crc ^ byte) & 255] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
