import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { PendingProfile } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { Placement } from "../base/reports.ts";

/** Bytes per chunk sent to a gateway. */
const chunkBytes = 256 * 1024;

/** Milliseconds after which an upload is deleted if no session has used it. */
const incomingMs = 60_000;

/** Age in milliseconds at which an unfinished file is deleted when a worker starts. */
const unfinishedMs = 60_000;

/** Maximum bytes of an upload from a gateway. */
const largest = 32 * 2 ** 20;

/** Profile of a session, with the version at the session's start. */
export interface UsedProfile {
  readonly sessionId: string;
  readonly placementEpoch: bigint;
  readonly profileId: string;
  readonly version: bigint;
  readonly engine: string;
}

/** Profile of an ended session: packed, or the reason why packing failed. */
export interface StoredProfile extends UsedProfile {
  /** Empty if the profile was packed. */
  readonly failure: string;
}

/** Returns the file name of a placement. Throws if the session id could escape the directory. */
function nameOf({ sessionId, placementEpoch }: Placement): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(sessionId)) throw new Error("expected a session id");
  return `${sessionId}.${placementEpoch}`;
}

function toJson(profile: StoredProfile): string {
  return JSON.stringify({
    ...profile,
    placementEpoch: String(profile.placementEpoch),
    version: String(profile.version),
  });
}

/** Returns a stored profile, or undefined if the file is missing or damaged. */
async function readStored(path: string): Promise<StoredProfile | undefined> {
  try {
    // Unchecked cast: only this class can write the file.
    const json = JSON.parse(await readFile(path, "utf8")) as Record<keyof StoredProfile, string>;
    return { ...json, placementEpoch: BigInt(json.placementEpoch), version: BigInt(json.version) };
  } catch {
    return undefined;
  }
}

/**
 * A worker's store for profiles in transit: uploads from gateways for sessions about to start, and packed profiles of
 * ended sessions until gateways fetch them. The store is on disk, so pending profiles survive the worker.
 */
export class ProfileStore {
  /** Worker that owns this store. */
  readonly owner: { readonly dataDir: string; readonly index: number };
  readonly directory: string;
  /** Sessions that are running, or that have ended and have profiles still being packed. */
  readonly #expected = new Map<string, PromiseWithResolvers<void>>();

  constructor(dataDir: string, index: number) {
    this.owner = { dataDir, index };
    this.directory = join(dataDir, "workers", String(index), "profiles");
  }

  /** Creates the directory and removes abandoned files. */
  async start(): Promise<void> {
    await this.makeDirectory();
    const unfinished = (await readdir(this.directory)).filter((name) => /\.(incoming|new)$/.test(name));
    for (const path of unfinished.map((name) => join(this.directory, name))) {
      const age = await stat(path)
        .then(({ mtimeMs }) => Date.now() - mtimeMs)
        .catch(() => 0);
      // Another worker of the machine may be writing a newer file on this worker's behalf.
      if (age > unfinishedMs) await rm(path, { force: true });
    }
  }

  async makeDirectory(): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
  }

  /** Returns the path of the packed profile uploaded for a session. */
  incomingOf(placement: Placement): string {
    return join(this.directory, `${nameOf(placement)}.incoming`);
  }

  /** Returns the path to which a session's profile is packed. */
  unfinishedOf(placement: Placement): string {
    return join(this.directory, `${nameOf(placement)}.new`);
  }

  /** Stores an upload until its session is created, for at most 60 s. Throws `bad-request` if it exceeds 32 MiB. */
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

  /** Registers the profile of a session that is being created. `find` then waits for `add` or `stopExpecting`. */
  expect(placement: Placement): void {
    this.#expected.set(nameOf(placement), Promise.withResolvers());
  }

  /** Stores the packed profile of an ended session, or the failure, atomically. */
  async add(profile: StoredProfile): Promise<void> {
    const path = join(this.directory, nameOf(profile));
    if (profile.failure === "") await rename(this.unfinishedOf(profile), `${path}.store`);
    else await rm(this.unfinishedOf(profile), { force: true });
    await writeFile(`${path}.json.new`, toJson(profile), { mode: 0o600, flush: true });
    await rename(`${path}.json.new`, `${path}.json`);
    this.stopExpecting(profile);
  }

  /** Ends the wait of `find` for a session's profile. */
  stopExpecting(placement: Placement): void {
    const name = nameOf(placement);
    this.#expected.get(name)?.resolve();
    this.#expected.delete(name);
  }

  /** Returns all pending profiles. Reads the directory each time, because other workers may add recovered profiles. */
  async pending(): Promise<Omit<PendingProfile, "$typeName">[]> {
    const names = (await readdir(this.directory).catch(() => [])).filter((name) => name.endsWith(".json"));
    const found = await Promise.all(names.map((name) => readStored(join(this.directory, name))));
    return found
      .filter((profile) => profile !== undefined)
      .map(({ sessionId, placementEpoch, failure }) => ({ sessionId, placementEpoch, failure }));
  }

  /**
   * Resolves with a session's profile once it has been packed. Throws `not-found` if the session has no profile or
   * packing failed.
   */
  async find(placement: Placement, signal: AbortSignal): Promise<StoredProfile> {
    const name = nameOf(placement);
    const expected = this.#expected.get(name)?.promise;
    if (expected) await raceSignal(expected, signal);
    const profile = await readStored(join(this.directory, `${name}.json`));
    if (!profile) throw fail("not-found", {}, { detail: "the worker has no profile of the session" });
    if (profile.failure !== "") throw fail("not-found", {}, { detail: profile.failure });
    return profile;
  }

  /** Returns the packed profile of a session as a stream. */
  read(placement: Placement): AsyncIterable<Buffer> {
    return createReadStream(join(this.directory, `${nameOf(placement)}.store`), { highWaterMark: chunkBytes });
  }

  async drop(placement: Placement): Promise<void> {
    const path = join(this.directory, nameOf(placement));
    // Deletes the .json file first, so that a crash in between leaves no entry without its packed profile.
    for (const suffix of ["json", "store"]) await rm(`${path}.${suffix}`, { force: true });
  }
}

async function* bounded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > largest) throw fail("bad-request", {}, { detail: "the profile's store exceeds 32 MiB" });
    yield chunk;
  }
}
