import { create } from "@bufbuild/protobuf";
import type { WorkerLink } from "../fleet/channels.ts";
import {
  type CommandContext,
  type ProfileChunk,
  ProfileChunkSchema,
  WorkerService,
} from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { callClientStreaming } from "../platform/grpc/grpc-codec.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { Sealer } from "../platform/secrets/secrets-sealer.ts";
import { findStore, readChunk } from "./chunk-store.ts";
import { storeContext } from "./profile-upload.ts";

/** Milliseconds to transfer a store to a worker: 32 MiB at 1 MiB/s. */
const transferTimeout = 32_000;

/** A profile version to restore, and the target. */
export interface ProfileRestore {
  readonly link: WorkerLink;
  readonly context: CommandContext;
  readonly accountId: string;
  readonly profileId: string;
  readonly version: bigint;
}

/** Transfers profile stores to workers for sessions that are about to be created. */
export type RestoreProfile = (restore: ProfileRestore) => Promise<void>;

/** Creates the function that transfers stores to workers. A profile that was never saved needs no transfer. */
export function createProfileRestore({ db, sealer }: { db: Database; sealer: Sealer }): RestoreProfile {
  /** Yields the messages of a transfer. Decrypts one part at a time, as fast as the worker reads. */
  async function* readStore({ accountId, profileId, version, context }: ProfileRestore): AsyncGenerator<ProfileChunk> {
    const store = await findStore(db, profileId, version);
    if (!store) throw new Error(`the profile ${profileId} has no store of version ${version}`);
    const dataKey = sealer.openDataKey(store.data_key, storeContext(accountId, profileId));
    yield create(ProfileChunkSchema, { context, profileId, version });
    for (let index = 0; index < store.chunks; index += 1) {
      const sealed = await readChunk(db, store.id, index);
      yield create(ProfileChunkSchema, { data: dataKey.openPart(index, index === store.chunks - 1, sealed) });
    }
  }

  return async (restore) => {
    if (restore.version === 0n) return;
    const { client, metadata } = restore.link;
    const options = { metadata, timeoutMs: transferTimeout };
    await callClientStreaming(client, WorkerService.method.putProfile, readStore(restore), options);
  };
}
