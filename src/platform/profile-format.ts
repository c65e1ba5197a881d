/** Header of a profile store, followed by a tar archive of the files. Cookies have the form of the browser engine. */
export interface ProfileManifest<Cookie> {
  readonly format: 1;
  /** Browser engine that wrote the files. */
  readonly engine: string;
  /** Major version of that browser. An older browser cannot read the files. */
  readonly browserMajor: number;
  readonly cookies: readonly Cookie[];
}

/** Maximum length of a manifest. Browsers store 3,300 cookies of at most 4 KiB. */
const longest = 16 * 2 ** 20;

/** Encodes a manifest with a length prefix. */
export function writeManifest(manifest: ProfileManifest<object>): Buffer {
  const json = Buffer.from(JSON.stringify(manifest));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json]);
}

/** Reads the manifest of a store. Resolves with the manifest and the stream of files. */
export async function readManifest<Cookie>(
  store: AsyncIterable<Buffer>,
): Promise<{ readonly manifest: ProfileManifest<Cookie>; readonly files: AsyncIterable<Buffer> }> {
  const chunks = store[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  const fill = async (length: number): Promise<void> => {
    while (head.length < length) {
      const { value, done } = await chunks.next();
      if (done) throw new Error(`expected at least ${length} bytes in the profile store, got ${head.length}`);
      head = Buffer.concat([head, value]);
    }
  };
  await fill(4);
  const end = 4 + head.readUInt32BE(0);
  if (end > longest) throw new Error(`expected a profile manifest of at most ${longest} bytes, got ${end}`);
  await fill(end);
  // Unchecked cast: stores are sealed, so only this code can have written the manifest.
  const manifest = JSON.parse(head.subarray(4, end).toString()) as ProfileManifest<Cookie>;
  const first = head.subarray(end);
  async function* files(): AsyncGenerator<Buffer> {
    if (first.length > 0) yield first;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
  }
  return { manifest, files: files() };
}
