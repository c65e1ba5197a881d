import { crc32 } from "node:zlib";

/** A file to add to an archive. Its size and checksum need not be known in advance. */
export interface ZipEntry {
  readonly name: string;
  readonly modifiedAt: Date;
  readonly content: AsyncIterable<Uint8Array>;
}

interface WrittenEntry extends Pick<ZipEntry, "modifiedAt"> {
  readonly name: Buffer;
  readonly crc: number;
  readonly bytes: number;
  readonly offset: number;
}

/** Version 2.0 of the format. The high byte of the creator is Unix. */
const version = 20;
const madeBy = (3 << 8) | version;

/** The name is UTF-8, and checksum and sizes follow the content. */
const flags = (1 << 11) | (1 << 3);

/** Permissions of a regular file (rw-r--r--) in Unix. */
const attributes = (0o100644 << 16) >>> 0;

const signatures = { local: 0x04034b50, descriptor: 0x08074b50, central: 0x02014b50, end: 0x06054b50 };

/**
 * Writes a ZIP archive (PKWARE APPNOTE 6.3) without compression, one file after the other. The archive must be smaller
 * than 4 GiB and have fewer than 65,536 files. A session has at most 1,000 files and 768 MiB.
 */
export async function* zipStream(entries: AsyncIterable<ZipEntry>): AsyncGenerator<Uint8Array, void, undefined> {
  const written: WrittenEntry[] = [];
  let offset = 0;
  for await (const { name, modifiedAt, content } of entries) {
    const start = { name: Buffer.from(name), modifiedAt, crc: 0, bytes: 0, offset };
    const header = Buffer.concat([localHeader(start), start.name]);
    yield header;
    let { crc, bytes } = start;
    for await (const chunk of content) {
      crc = crc32(chunk, crc);
      bytes += chunk.length;
      yield chunk;
    }
    const entry = { ...start, crc, bytes };
    const descriptor = dataDescriptor(entry);
    yield descriptor;
    written.push(entry);
    offset += header.length + bytes + descriptor.length;
  }
  const directory = Buffer.concat(written.flatMap((entry) => [centralHeader(entry), entry.name]));
  yield Buffer.concat([directory, endOfDirectory(written.length, directory.length, offset)]);
}

/** Concatenates little-endian numbers of 2 or 4 bytes. */
function layOut(...fields: readonly (readonly [size: 2 | 4, value: number])[]): Buffer {
  const buffer = Buffer.alloc(fields.reduce((sum, [size]) => sum + size, 0));
  let at = 0;
  for (const [size, value] of fields) at = buffer.writeUIntLE(value, at, size);
  return buffer;
}

/** Time and date of MS-DOS, in UTC. Their range is 1980 to 2107, in steps of 2 s. */
function dosTime(at: Date): readonly [time: number, date: number] {
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  const year = Math.min(Math.max(at.getUTCFullYear(), 1980), 2107) - 1980;
  return [time, (year << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate()];
}

function localHeader({ name, modifiedAt }: WrittenEntry): Buffer {
  const [time, date] = dosTime(modifiedAt);
  return layOut(
    [4, signatures.local],
    [2, version],
    [2, flags],
    [2, 0],
    [2, time],
    [2, date],
    [4, 0],
    [4, 0],
    [4, 0],
    [2, name.length],
    [2, 0],
  );
}

function dataDescriptor({ crc, bytes }: WrittenEntry): Buffer {
  return layOut([4, signatures.descriptor], [4, crc], [4, bytes], [4, bytes]);
}

function centralHeader({ name, modifiedAt, crc, bytes, offset }: WrittenEntry): Buffer {
  const [time, date] = dosTime(modifiedAt);
  return layOut(
    [4, signatures.central],
    [2, madeBy],
    [2, version],
    [2, flags],
    [2, 0],
    [2, time],
    [2, date],
    [4, crc],
    [4, bytes],
    [4, bytes],
    [2, name.length],
    [2, 0],
    [2, 0],
    [2, 0],
    [2, 0],
    [4, attributes],
    [4, offset],
  );
}

function endOfDirectory(entries: number, bytes: number, offset: number): Buffer {
  return layOut([4, signatures.end], [2, 0], [2, 0], [2, entries], [2, entries], [4, bytes], [4, offset], [2, 0]);
}
