import { randomUUID } from "node:crypto";
import type { ProfileChunk } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { Sealer, SecretContext } from "../platform/secrets/secrets-sealer.ts";
import { insertChunk, insertStore } from "./chunk-store.ts";

/** The largest store, in bytes. */
const largest = 32 * 2 ** 20;

/** A store that came whole; no profile points to it yet. */
export interface UploadedStore {
  readonly id: string;
  readonly sizeBytes: number;
  readonly engine: string;
}

/** What a worker sent is not the store of the profile: sending it again would not help. */
export class UnfitStore extends Error {
  override readonly name = "UnfitStore";
}

/** Names a profile's store to the sealer. */
export function storeContext(accountId: string, profileId: string): SecretContext {
  return { accountId, purpose: `profile-store ${profileId}` };
}

/** Whose store is expected. */
export interface ExpectedStore {
  readonly account_id: string;
  readonly profile_id: string;
  readonly version: string;
}

/** Takes the first message of a stream, which says whose store follows. */
async function readHead(chunks: AsyncIterator<ProfileChunk>, expected: ExpectedStore): Promise<ProfileChunk> {
  const { value: head, done } = await chunks.next();
  if (done) throw new UnfitStore("the worker sent nothing");
  if (head.profileId !== expected.profile_id || String(head.version) !== expected.version || head.engine === "") {
    throw new UnfitStore("the worker sent another profile");
  }
  return head;
}

/** Seals a store as it comes and keeps its parts one by one: no more than two are in memory. */
export async function uploadStore(
  { db, sealer }: { readonly db: Database; readonly sealer: Sealer },
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
    // The last part is sealed as such, so that a store that was cut short does not open.
    let next = await chunks.next();
    while (!next.done) {
      const { data } = next.value;
      sizeBytes += data.length;
      if (sizeBytes > largest) throw new UnfitStore(`the profile is larger than ${largest} bytes`);
      next = await chunks.next();
      await insertChunk(db, id, index, dataKey.sealPart(index, next.done === true, data));
      index += 1;
    }
    if (index === 0) throw new UnfitStore("the worker sent an empty store");
    return { id, sizeBytes, engine };
  } finally {
    await chunks.return?.();
  }
}
