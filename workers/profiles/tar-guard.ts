/** What a profile may hold at most, unpacked: half of what a session's disk may. */
const limits = { bytes: 512 * 2 ** 20, files: 50_000, attributes: 64 * 2 ** 10 };

const block = 512;

/** Such blocks end an archive. */
const end = Buffer.alloc(block);

/** Types of entries (POSIX ustar and pax): a regular file has two names, and may have attributes before it. */
const regular = new Set(["0", "\0"]);
const attributes = "x";

/** Reads the headers of a tar archive that goes by, and throws for one that holds anything but a bounded number of files. */
class TarScan {
  readonly #header = Buffer.alloc(block);
  #filled = 0;
  #skip = 0;
  #files = 0;
  #bytes = 0;

  push(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > limits.bytes) throw new Error(`the profile holds more than ${limits.bytes} bytes`);
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
    if (!this.#header.equals(end)) this.#enter();
  }

  #enter(): void {
    const type = this.#header.toString("latin1", 156, 157);
    const digits = this.#header.toString("latin1", 124, 136).replace(/[\0 ]+$/, "");
    const size = /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number.NaN;
    if (!(size <= limits.bytes)) throw new Error("the profile holds a file without a sane size");
    if (regular.has(type)) this.#files += 1;
    else if (type !== attributes || size > limits.attributes)
      throw new Error("the profile holds more than regular files");
    if (this.#files > limits.files) throw new Error(`the profile holds more than ${limits.files} files`);
    this.#skip = Math.ceil(size / block) * block;
  }
}

/** Passes a tar archive on, as long as it is of regular files, and of not too many: web pages have made them. */
export async function* guardTar(archive: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  const scan = new TarScan();
  for await (const chunk of archive) {
    scan.push(chunk);
    yield chunk;
  }
}
