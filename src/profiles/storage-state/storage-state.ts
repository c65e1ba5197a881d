import { create } from "@bufbuild/protobuf";
import { lockAccount } from "../../accounts/store.ts";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { type ProfileChunk, ProfileChunkSchema } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { GetStorageStateRequest, Profile, PutStorageStateRequest } from "../../gen/pilothouse/v1/profile_pb.ts";
import type { Call } from "../../kernel/call.ts";
import { bytesOfBody } from "../../kernel/request-body.ts";
import type { Limits } from "../../limits/limits.ts";
import { counted } from "../../platform/counted.ts";
import { fail, failFields } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { deleteStore, findStore, readChunk } from "../chunk-store.ts";
import { toProfileMessage } from "../profile-message.ts";
import { noProfile } from "../profile-reservation.ts";
import { storeContext, type UploadedStore, uploadStore } from "../profile-upload.ts";
import { findProfile, lockProfile, type ProfileRow, sumStorage, switchStore } from "../store.ts";
import { findHolder } from "../use-store.ts";
import { createStateConverter, longestState } from "./state-thread.ts";

export interface StorageStateParts extends Pick<PlatformParts, "db" | "clock" | "sealer"> {
  readonly limits: Limits;
}

/** Only profiles of this engine can be converted. */
const engine = "chromium";

/** Bytes per part of a store. */
const chunkBytes = 256 * 1024;

/** State of a profile that was never saved. */
const emptyState = Buffer.from('{"cookies":[],"origins":[]}');

/** Creates the methods that convert profiles from and to storage states of Playwright. */
export function createStorageState({ db, limits, clock, sealer }: StorageStateParts) {
  const convert = createStateConverter();

  async function findOwn({ principal }: Call, id: string): Promise<ProfileRow> {
    const row = await findProfile(db, id, principal.accountId);
    if (!row) throw noProfile();
    if (row.engine === null || row.engine === engine) return row;
    throw fail(
      "driver-not-integrated",
      {},
      { detail: `expected a profile of ${engine}, got a profile of ${row.engine}: use another profile` },
    );
  }

  /** Reads and decrypts the store of a profile. */
  async function readStore(call: Call, { id, account_id: accountId, version }: ProfileRow): Promise<Buffer> {
    const store = await findStore(db, id, BigInt(version));
    if (!store) throw fail("conflict", {}, { detail: "the profile was saved meanwhile: try again" });
    const dataKey = sealer.openDataKey(store.data_key, storeContext(accountId, id));
    const parts: Buffer[] = [];
    let bytes = 0;
    for (let index = 0; index < store.chunks; index += 1) {
      const part = dataKey.openPart(index, index === store.chunks - 1, await readChunk(db, store.id, index));
      bytes += part.length;
      call.holdCapture(bytes);
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  async function readBody(call: Call, content: HttpBody | undefined): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of bytesOfBody(call, content)) {
      bytes += part.length;
      if (bytes > longestState)
        throw failFields("validation-failed", { body: `must be at most ${longestState} bytes` });
      call.holdCapture(bytes);
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  async function assertRoom(tx: Tx, accountId: string, id: string, sizeBytes: number): Promise<void> {
    const {
      profileStorageBytes: cap,
      profileStorageIsSoft: isSoft,
      name,
    } = limits.of(await lockAccount(tx, accountId));
    const used = (await sumStorage(tx, accountId, id)) + sizeBytes;
    if (isSoft || used <= cap) return;
    const detail = `the account's profiles would use ${counted(used, "byte")} of their limit of ${cap}: delete a profile`;
    throw fail("storage-quota-exceeded", { used_bytes: used, cap_bytes: cap, tier: name }, { detail });
  }

  /**
   * Makes a store the content of the profile. Throws `not-found`, `storage-quota-exceeded`, or `conflict` if a session
   * uses or is still saving the profile.
   */
  async function replace(call: Call, id: string, store: UploadedStore): Promise<void> {
    const { accountId } = call.principal;
    await db.transaction(async (tx) => {
      await assertRoom(tx, accountId, id, store.sizeBytes);
      if (!(await lockProfile(tx, id, accountId))) throw noProfile();
      const holder = await findHolder(tx, id);
      if (holder) {
        const detail = `the session ${holder.session_id} uses or is still saving the profile: end the session and try again`;
        throw fail("conflict", { active_session_id: holder.session_id }, { detail });
      }
      await switchStore(tx, { id, storeId: store.id, sizeBytes: store.sizeBytes, engine });
      call.audit(tx, { subject: id, data: { bytes: store.sizeBytes } });
    });
  }

  return {
    async get(call: Call, { id }: GetStorageStateRequest): Promise<HttpBody> {
      const row = await findOwn(call, id);
      const data =
        row.version === "0" ? emptyState : await convert({ kind: "read", store: await readStore(call, row) });
      await db.transaction(async (tx) => call.audit(tx, { subject: id, data: { bytes: data.length } }));
      return create(HttpBodySchema, { contentType: "application/json", data });
    },

    async put(call: Call, { id, content }: PutStorageStateRequest): Promise<Profile> {
      const row = await findOwn(call, id);
      const json = await readBody(call, content);
      const packed = await convert({ kind: "write", json, now: clock.now() });
      const expected = { account_id: row.account_id, profile_id: id, version: row.version };
      const store = await uploadStore({ db, sealer }, chunksOf(row, packed), expected);
      try {
        await replace(call, id, store);
      } finally {
        // Deletes the store only if the profile does not refer to it.
        await deleteStore(db, store.id);
      }
      return toProfileMessage(await findOwn(call, id));
    },
  };
}

async function* chunksOf({ id, version }: ProfileRow, packed: Uint8Array): AsyncGenerator<ProfileChunk> {
  yield create(ProfileChunkSchema, { profileId: id, version: BigInt(version), engine });
  for (let at = 0; at < packed.length; at += chunkBytes)
    yield create(ProfileChunkSchema, { data: packed.subarray(at, at + chunkBytes) });
}
