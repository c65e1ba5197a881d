import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { PendingProfile } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { Placement } from "../base/placement.ts";

/** What a gateway takes at once. */
const chunkBytes = 256 * 1024;

/** A store that is put in place for a create that does not come is kept this long, in milliseconds. */
const incomingMs = 60_000;

/** Nobody writes at a store for longer than this, in milliseconds. */
const unfinishedMs = 60_000;

/** The largest store that a gateway puts in place. */
const largest = 32 * 2 ** 20;

/** A profile as a session has it: which, and the version that the session began with. */
export interface UsedProfile {
  readonly sessionId: string;
  readonly placementEpoch: bigint;
  readonly profileId: string;
  readonly version: bigint;
  readonly engine: string;
}

/** A profile whose session has ended: packed, or why it could not be. */
export interface ShelvedProfile extends UsedProfile {
  /** Empty when it is packed. */
  readonly failure: string;
}

/** Names a placement in the shelf's directory; it must not lead anywhere else. */
function nameOf({ sessionId, placementEpoch }: Placement): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(sessionId)) throw new Error("not the identifier of a session");
  return `${sessionId}.${placementEpoch}`;
}

/** Writes a shelved profile as the shelf keeps it. */
function toJson(profile: ShelvedProfile): string {
  return JSON.stringify({
    ...profile,
    placementEpoch: String(profile.placementEpoch),
    version: String(profile.version),
  });
}

/** Reads a shelved profile; undefined when the file has gone or is damaged. */
async function readShelved(path: string): Promise<ShelvedProfile | undefined> {
  try {
    // The boundary where JSON becomes what this class wrote: nobody else can write here.
    const json = JSON.parse(await readFile(path, "utf8")) as Record<keyof ShelvedProfile, string>;
    return { ...json, placementEpoch: BigInt(json.placementEpoch), version: BigInt(json.version) };
  } catch {
    return undefined;
  }
}

/**
 * Where a worker keeps profiles on their way: those that gateways have put in place for a session to come, and those of
 * ended sessions that wait to be taken. It is on disk, so that what waits outlives the worker.
 */
export class ProfileShelf {
  /** The worker whose shelf it is. */
  readonly owner: { readonly dataDir: string; readonly index: number };
  readonly directory: string;
  /** Sessions that have not ended yet, or whose profiles are being packed. */
  readonly #coming = new Map<string, PromiseWithResolvers<void>>();

  constructor(dataDir: string, index: number) {
    this.owner = { dataDir, index };
    this.directory = join(dataDir, "workers", String(index), "profiles");
  }

  /** Makes the directory, and clears what was unfinished when a worker died. */
  async start(): Promise<void> {
    await this.makeDirectory();
    const unfinished = (await readdir(this.directory)).filter((name) => /\.(incoming|new)$/.test(name));
    for (const path of unfinished.map((name) => join(this.directory, name))) {
      const age = await stat(path)
        .then(({ mtimeMs }) => Date.now() - mtimeMs)
        .catch(() => 0);
      // A younger one may be what another worker of the machine packs at this moment for us.
      if (age > unfinishedMs) await rm(path, { force: true });
    }
  }

  /** Makes the directory, for its owner alone. */
  async makeDirectory(): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
  }

  /** Where the store lies that was put in place for a session. */
  incomingOf(placement: Placement): string {
    return join(this.directory, `${nameOf(placement)}.incoming`);
  }

  /** Where a session's store is packed before it is shelved. */
  unfinishedOf(placement: Placement): string {
    return join(this.directory, `${nameOf(placement)}.new`);
  }

  /** Keeps a store until its session is created. */
  async put(placement: Placement, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const path = this.incomingOf(placement);
    try {
      await pipeline(chunks, bounded, createWriteStream(path, { mode: 0o600 }));
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    setTimeout(() => void rm(path, { force: true }), incomingMs).unref();
  }

  /** Expects the profile of a session that is being created. */
  expect(placement: Placement): void {
    this.#coming.set(nameOf(placement), Promise.withResolvers());
  }

  /** Shelves the packed store of a session that has ended, or why there is none: a crash leaves all of it or nothing. */
  async shelve(profile: ShelvedProfile): Promise<void> {
    const path = join(this.directory, nameOf(profile));
    if (profile.failure === "") await rename(this.unfinishedOf(profile), `${path}.store`);
    else await rm(this.unfinishedOf(profile), { force: true });
    await writeFile(`${path}.json.new`, toJson(profile), { mode: 0o600, flush: true });
    await rename(`${path}.json.new`, `${path}.json`);
    this.expectNoMore(profile);
  }

  /** Nothing comes of a session, or it has come. */
  expectNoMore(placement: Placement): void {
    const name = nameOf(placement);
    this.#coming.get(name)?.resolve();
    this.#coming.delete(name);
  }

  /** All that waits to be taken. Read anew: another worker may have shelved what a dead one of this name left. */
  async pending(): Promise<Omit<PendingProfile, "$typeName">[]> {
    const names = (await readdir(this.directory).catch(() => [])).filter((name) => name.endsWith(".json"));
    const found = await Promise.all(names.map((name) => readShelved(join(this.directory, name))));
    return found
      .filter((profile) => profile !== undefined)
      .map(({ sessionId, placementEpoch, failure }) => ({ sessionId, placementEpoch, failure }));
  }

  /** Gives what waits of a session, once it is there; throws `not-found` when there is nothing, nor will be. */
  async find(placement: Placement, signal: AbortSignal): Promise<ShelvedProfile> {
    const name = nameOf(placement);
    const coming = this.#coming.get(name)?.promise;
    if (coming) await raceSignal(coming, signal);
    const profile = await readShelved(join(this.directory, `${name}.json`));
    if (!profile) throw fail("not-found", {}, { detail: "the worker has no profile of the session" });
    if (profile.failure !== "") throw fail("not-found", {}, { detail: profile.failure });
    return profile;
  }

  /** Reads the packed store of a session. */
  read(placement: Placement): AsyncIterable<Buffer> {
    return createReadStream(join(this.directory, `${nameOf(placement)}.store`), { highWaterMark: chunkBytes });
  }

  /** Forgets what waited of a session. */
  async drop(placement: Placement): Promise<void> {
    const path = join(this.directory, nameOf(placement));
    // First that it is there, so that a crash in between offers nothing that cannot be read.
    for (const suffix of ["json", "store"]) await rm(`${path}.${suffix}`, { force: true });
  }
}

async function* bounded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > largest) throw fail("bad-request", {}, { detail: "the profile's store is too large" });
    yield chunk;
  }
}
