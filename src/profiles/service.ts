import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { lockAccount } from "../accounts/store.ts";
import {
  type CreateProfileRequest,
  type ListProfilesRequest,
  ListProfilesResponseSchema,
  type ProfileService,
  type UpdateProfileRequest,
} from "../gen/pilothouse/v1/profile_pb.ts";
import type { Call } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { type Bus, nextMessage } from "../platform/bus.ts";
import type { Config } from "../platform/config.ts";
import { counted } from "../platform/counted.ts";
import { fail, failFields } from "../platform/errors.ts";
import { idPattern } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import { toProfileMessage } from "./profile-message.ts";
import { noProfile } from "./profile-reservation.ts";
import { createStorageState, type StorageStateParts } from "./storage-state/storage-state.ts";
import {
  countProfiles,
  deleteProfile,
  findProfile,
  insertProfile,
  listProfiles,
  lockProfile,
  type ProfileFields,
  updateProfile,
} from "./store.ts";
import { findHolder } from "./use-store.ts";

export interface ProfileServiceParts extends StorageStateParts {
  readonly bus: Bus;
  readonly config: Pick<Config, "queueMs">;
}

/** Milliseconds between checks for a save, in case a notification was lost. */
const pollEvery = 100;

const defaultPage = 20;

const profileId = idPattern("prf");

/**
 * Reads the changes of an update, as named by its mask. Fields without a value are cleared, except `name`, for which
 * `validation-failed` is thrown.
 */
function readChanges({ updateMask, name, description, labels }: UpdateProfileRequest): Partial<ProfileFields> {
  const paths = new Set(updateMask?.paths);
  if (paths.has("name") && name === undefined) throw failFields("validation-failed", { name: "cannot be cleared" });
  return {
    ...(paths.has("name") && name !== undefined && { name }),
    ...(paths.has("description") && { description: description ?? null }),
    ...(paths.has("labels") && { labels }),
  };
}

export function createProfileService(parts: ProfileServiceParts): ServiceImplementation<typeof ProfileService> {
  const { db, limits, bus, clock, config } = parts;
  const storageState = createStorageState(parts);

  function createProfile(call: Call, { name, description, labels }: CreateProfileRequest) {
    const { accountId } = call.principal;
    const id = call.ids.next("prf");
    return call.commit(async (tx) => {
      const [account, count] = await Promise.all([lockAccount(tx, accountId), countProfiles(tx, accountId)]);
      const { profiles: limit, name: tier } = limits.of(account);
      if (count >= limit) {
        const detail = `the account has ${counted(count, "profile")}, the maximum on tier ${tier}: delete one first`;
        throw fail("tier-limit", { current_profiles: count, limit }, { detail });
      }
      const row = await insertProfile(tx, { id, accountId, name, labels, description: description ?? null });
      call.audit(tx, { subject: id, data: { name } });
      return toProfileMessage(row);
    });
  }

  async function list({ principal }: Call, { limit = defaultPage, cursor }: ListProfilesRequest) {
    const query = { accountId: principal.accountId, before: readCursor(cursor, profileId) };
    const { rows, position } = cutPage(await listProfiles(db, { ...query, limit: limit + 1 }), limit);
    return create(ListProfilesResponseSchema, { data: rows.map(toProfileMessage), ...position });
  }

  /** Deletes a profile, or returns the session that holds it. Throws `not-found`. */
  async function tryDestroy(call: Call, id: string): ReturnType<typeof findHolder> {
    return db.transaction(async (tx) => {
      const row = await lockProfile(tx, id, call.principal.accountId);
      if (!row) throw noProfile();
      const holder = await findHolder(tx, id);
      if (holder) return holder;
      await deleteProfile(tx, id);
      call.audit(tx, { subject: id, data: { name: row.name } });
      return undefined;
    });
  }

  /**
   * Deletes a profile. Waits for the save of an ended session, for at most the queue time of a launch. Throws
   * `conflict` if a session still holds the profile.
   */
  async function destroy(call: Call, id: string): Promise<void> {
    const deadline = clock.monotonic() + config.queueMs;
    for (;;) {
      const holder = await tryDestroy(call, id);
      if (!holder) return;
      const isOver = clock.monotonic() >= deadline || call.signal.aborted;
      if (holder.held_until === null || isOver) {
        const detail = `the session ${holder.session_id} uses or is still saving the profile: end the session and try again`;
        throw fail("conflict", { active_session_id: holder.session_id }, { detail });
      }
      await nextMessage(bus, "capacity", pollEvery, call.signal);
    }
  }

  return {
    create: createProfile,
    list,
    async get({ principal }, { id }) {
      const row = await findProfile(db, id, principal.accountId);
      if (!row) throw noProfile();
      return toProfileMessage(row);
    },
    async update(call, request) {
      const { accountId } = call.principal;
      const changes = readChanges(request);
      return db.transaction(async (tx) => {
        const row = await updateProfile(tx, { id: request.id, accountId }, changes);
        if (!row) throw noProfile();
        call.audit(tx, { subject: row.id, data: { changed: Object.keys(changes) } });
        return toProfileMessage(row);
      });
    },
    async delete(call, { id }) {
      await destroy(call, id);
      return create(EmptySchema);
    },
    getStorageState: (call, request) => storageState.get(call, request),
    putStorageState: (call, request) => storageState.put(call, request),
  };
}
