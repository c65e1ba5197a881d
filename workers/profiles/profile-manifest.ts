import type { CdpSession } from "../cdp/cdp-session.ts";

/** A cookie as the browser takes it. */
export type Cookie = Awaited<ReturnType<typeof readCookies>>[number];

/** What stands before the files of a store. */
export interface ProfileManifest {
  readonly format: 1;
  /** The browser that wrote the files. */
  readonly engine: string;
  /** Its major version: a newer browser reads the files of an older one, not the other way round. */
  readonly browserMajor: number;
  readonly cookies: readonly Cookie[];
}

/** The longest manifest: a browser keeps 3,300 cookies of at most 4 KiB. */
const longest = 16 * 2 ** 20;

/** Gives the browser cookies. One that it does not take must not keep it from the others. */
export async function setCookies(session: CdpSession, cookies: readonly Cookie[]): Promise<void> {
  try {
    await session.send("Storage.setCookies", { cookies: [...cookies] });
  } catch {
    for (const cookie of cookies) {
      await session.send("Storage.setCookies", { cookies: [cookie] }).catch(() => undefined);
    }
  }
}

/** Reads all cookies, in the form in which they are given back: without an expiry where they go with the session. */
export async function readCookies(session: CdpSession) {
  const { cookies } = await session.send("Storage.getCookies");
  return cookies.map(({ size: _size, session: isSession, expires, ...cookie }) => ({
    ...cookie,
    ...(!isSession && { expires }),
  }));
}

/** Writes a manifest with its length before it. */
export function writeManifest(manifest: ProfileManifest): Buffer {
  const json = Buffer.from(JSON.stringify(manifest));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json]);
}

/** Reads the manifest of a store, and gives it with the files that follow. */
export async function readManifest(
  store: AsyncIterable<Buffer>,
): Promise<{ readonly manifest: ProfileManifest; readonly files: AsyncIterable<Buffer> }> {
  const chunks = store[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  const fill = async (length: number): Promise<void> => {
    while (head.length < length) {
      const { value, done } = await chunks.next();
      if (done) throw new Error("a profile's store is cut short");
      head = Buffer.concat([head, value]);
    }
  };
  await fill(4);
  const end = 4 + head.readUInt32BE(0);
  if (end > longest) throw new Error("a profile's store has no manifest");
  await fill(end);
  // The boundary where JSON becomes what we wrote: stores are sealed, and nobody else can have written one.
  const manifest = JSON.parse(head.subarray(4, end).toString()) as ProfileManifest;
  const first = head.subarray(end);
  async function* files(): AsyncGenerator<Buffer> {
    if (first.length > 0) yield first;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
  }
  return { manifest, files: files() };
}
