import { randomUUID } from "node:crypto";
import type { ProfileChunk } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { SecretContext } from "../platform/secrets/secrets-sealer.ts";
import { insertChunk, insertStore } from "./chunk-store.ts";

/** Maximum bytes of a store. */
const largest = 32 * 2 ** 20;

/** A completely uploaded store that no profile refers to yet. */
export interface UploadedStore {
  readonly id: string;
  readonly sizeBytes: number;
  readonly engine: string;
}

/**
 * Thrown if the store that the worker sent is empty, too large, or of another profile or version. A retry would not
 * help.
 */
export class InvalidStore extends Error {
  override readonly name = "InvalidStore";
}

/** Encryption context of a profile's store. */
export function storeContext(accountId: string, profileId: string): SecretContext {
  return { accountId, purpose: `profile-store ${profileId}` };
}

export interface ExpectedStore {
  readonly account_id: string;
  readonly profile_id: string;
  readonly version: string;
}

/**
 * Reads the first message of a stream. Throws `InvalidStore` if there is none, or if the message does not name the
 * expected profile and version, and an engine.
 */
async function readHead(chunks: AsyncIterator<ProfileChunk>, expected: ExpectedStore): Promise<ProfileChunk> {
  const { value: head, done } = await chunks.next();
  if (done) throw new InvalidStore("the worker sent nothing");
  if (head.profileId !== expected.profile_id || String(head.version) !== expected.version || head.engine === "") {
    throw new InvalidStore("the worker sent a profile or version other than expected");
  }
  return head;
}

/**
 * Encrypts a store and inserts it into the database part by part, with at most two parts in memory. Throws
 * `InvalidStore`.
 */
export async function uploadStore(
  { db, sealer }: Pick<PlatformParts, "db" | "sealer">,
  stream: AsyncIterable<ProfileChunk>,
  expected: ExpectedStore,
): Promise<UploadedStore> {
  const chunks = stream[Symbol.asyncIterator]();
  try {
    const { engine } = await readHead(chunks, expected);
    const { dataKey, sealed } = sealer.makeDataKey(storeContext(expected.account_id, expected.profile_id));
    const id = randomUUID();
    await insertStore(db, { id, profileId: expected.profile_id, dataKey: sealed });
    let sizeBytes = 0;
    let index = 0;
    // The last part is marked in its encryption, so that a truncated store does not decrypt.
    let next = await chunks.next();
    while (!next.done) {
      const { data } = next.value;
      sizeBytes += data.length;
      if (sizeBytes > largest) throw new InvalidStore(`the profile is larger than ${largest} bytes`);
      next = await chunks.next();
      await insertChunk(db, id, index, dataKey.sealPart(index, next.done === true, data));
      index += 1;
    }
    if (index === 0) throw new InvalidStore("the worker sent an empty store");
    return { id, sizeBytes, engine };
  } finally {
    await chunks.return?.();
  }
}
