const block = 512;

/** Maximum bytes of all files of the directory together. */
const longestKept = 128 * 2 ** 20;

/**
 * Reads the regular files below `directory`, which ends with a slash, from a tar archive. Names are relative to the
 * directory. Skips other entries. Throws if the files exceed `longestKept`.
 */
export async function readTarDirectory(
  archive: AsyncIterable<Buffer>,
  directory: string,
): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  const chunks = archive[Symbol.asyncIterator]();
  let buffered: Buffer = Buffer.alloc(0);
  let kept = 0;
  /** Consumes bytes. Returns the bytes if `isKept`, or else an empty buffer; undefined at the end of the archive. */
  const take = async (length: number, isKept: boolean): Promise<Buffer | undefined> => {
    const parts: Buffer[] = [];
    for (let left = length; left > 0; ) {
      if (buffered.length === 0) {
        const { value, done } = await chunks.next();
        if (done) return undefined;
        buffered = value;
      }
      const part = buffered.subarray(0, left);
      buffered = buffered.subarray(part.length);
      left -= part.length;
      if (isKept) parts.push(part);
    }
    return Buffer.concat(parts);
  };
  for (let header = await take(block, true); header; header = await take(block, true)) {
    const name = header.toString("latin1", 0, 100).replace(/\0.*$/s, "");
    // A negative size would extend the limit for the files that follow.
    const size = Math.max(0, Number.parseInt(header.toString("latin1", 124, 136), 8) || 0);
    const isKept = name.startsWith(directory) && header[156] === 0x30;
    if (isKept) kept += size;
    if (kept > longestKept) throw new Error("the profile has too much localStorage");
    const content = await take(Math.ceil(size / block) * block, isKept);
    if (isKept && content) files.set(name.slice(directory.length), content.subarray(0, size));
  }
  return files;
}

/** Writes a tar archive (POSIX ustar). File names must have at most 100 bytes. */
export function writeTar(files: ReadonlyMap<string, Buffer>): Buffer {
  const parts = [...files].flatMap(([name, content]) => {
    const padding = Buffer.alloc((block - (content.length % block)) % block);
    return [tarHeader(name, content.length), content, padding];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}

function tarHeader(name: string, size: number): Buffer {
  const header = Buffer.alloc(block);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  header.write(name, 0, "latin1");
  header.write(octal(0o600, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(0, 11), 136);
  header.write("        0", 148);
  header.write("ustar\u000000", 257);
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )} `,
    148,
  );
  return header;
}
