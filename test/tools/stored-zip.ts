import { crc32 } from "node:zlib";

const localHeader = 0x04034b50;
const centralHeader = 0x02014b50;
const endOfDirectory = 0x06054b50;
/** Mode of an executable file, in the upper half of the external attributes (made by Unix). */
const executable = (0o100755 << 16) >>> 0;

/** Creates a ZIP archive of one executable file, stored without compression. */
export function storedZip(name: string, content: string): Buffer {
  const path = Buffer.from(name);
  const data = Buffer.from(content);
  const local = Buffer.alloc(30);
  local.writeUInt32LE(localHeader, 0);
  local.writeUInt16LE(20, 4);
  writeSizes(local, 14, path, data);
  const central = Buffer.alloc(46);
  central.writeUInt32LE(centralHeader, 0);
  central.writeUInt16LE((3 << 8) | 20, 4);
  central.writeUInt16LE(20, 6);
  writeSizes(central, 16, path, data);
  central.writeUInt32LE(executable, 38);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(endOfDirectory, 0);
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length + path.length, 12);
  end.writeUInt32LE(local.length + path.length + data.length, 16);
  return Buffer.concat([local, path, data, central, path, end]);
}

/** Writes checksum, both sizes and the name's length, which are adjacent in both kinds of header. */
function writeSizes(header: Buffer, offset: number, path: Buffer, data: Buffer): void {
  header.writeUInt32LE(crc32(data), offset);
  header.writeUInt32LE(data.length, offset + 4);
  header.writeUInt32LE(data.length, offset + 8);
  header.writeUInt16LE(path.length, offset + 12);
}
