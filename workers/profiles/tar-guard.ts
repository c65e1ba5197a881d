/**
 * Limits of an unpacked profile. `bytes`: size of the archive, half of a session's disk bound. `files`: number of
 * files. `attributes`: bytes of one entry of attributes.
 */
const limits = { bytes: 512 * 2 ** 20, files: 50_000, attributes: 64 * 2 ** 10 };

const block = 512;

/** Zero blocks end an archive. */
const end = Buffer.alloc(block);

/** Entry types of regular files (POSIX ustar). */
const regular = new Set(["0", "\0"]);
/** Entry type of attributes, which may precede a regular file (pax). */
const attributes = "x";

/** Scans the headers of a streamed tar archive. Throws on anything except a limited number of regular files. */
class TarScan {
  readonly #header = Buffer.alloc(block);
  #filled = 0;
  #skip = 0;
  #files = 0;
  #bytes = 0;

  push(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > limits.bytes) throw new Error(`the profile exceeds ${limits.bytes} bytes`);
    for (let at = 0; at < chunk.length; ) {
      const wanted = this.#skip > 0 ? this.#skip : block - this.#filled;
      const part = chunk.subarray(at, at + wanted);
      at += part.length;
      if (this.#skip > 0) this.#skip -= part.length;
      else this.#fill(part);
    }
  }

  #fill(part: Buffer): void {
    part.copy(this.#header, this.#filled);
    this.#filled += part.length;
    if (this.#filled < block) return;
    this.#filled = 0;
    if (!this.#header.equals(end)) this.#readHeader();
  }

  #readHeader(): void {
    const type = this.#header.toString("latin1", 156, 157);
    const digits = this.#header.toString("latin1", 124, 136).replace(/[\0 ]+$/, "");
    const size = /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number.NaN;
    if (!(size <= limits.bytes)) throw new Error("the profile contains a file with an invalid size");
    if (regular.has(type)) this.#files += 1;
    else if (type !== attributes || size > limits.attributes)
      throw new Error("the profile contains entries other than regular files");
    if (this.#files > limits.files) throw new Error(`the profile contains more than ${limits.files} files`);
    this.#skip = Math.ceil(size / block) * block;
  }
}

/**
 * Passes a tar archive through. Throws if the archive exceeds the limits or contains entries other than regular files,
 * because its content comes from web pages.
 */
export async function* guardTar(archive: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  const scan = new TarScan();
  for await (const chunk of archive) {
    scan.push(chunk);
    yield chunk;
  }
}
