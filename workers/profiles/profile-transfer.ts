import { create } from "@bufbuild/protobuf";
import {
  type CommandContext,
  type ProfileChunk,
  ProfileChunkSchema,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { failFields } from "../../src/platform/errors.ts";
import type { ProfileStore } from "./profile-store.ts";

/** Receives a packed profile from a gateway for a session about to start. */
export async function receiveProfile(profileStore: ProfileStore, chunks: AsyncIterable<ProfileChunk>): Promise<void> {
  const messages = chunks[Symbol.asyncIterator]();
  const { value: head, done } = await messages.next();
  if (done || !head.context) throw failFields("validation-failed", { context: "is required" });
  await profileStore.put(head.context, dataOf(messages));
}

async function* dataOf(messages: AsyncIterator<ProfileChunk>): AsyncGenerator<Uint8Array> {
  for (let next = await messages.next(); !next.done; next = await messages.next()) yield next.value.data;
}

/** Yields the packed profile of an ended session for a gateway. Waits until it has been packed. */
export async function* sendProfile(
  profileStore: ProfileStore,
  context: CommandContext | undefined,
  caller: AbortSignal,
): AsyncGenerator<ProfileChunk> {
  if (!context) throw failFields("validation-failed", { context: "is required" });
  const signal = AbortSignal.any([caller, AbortSignal.timeout(context.timeoutMs || 60_000)]);
  const { profileId, version, engine } = await profileStore.find(context, signal);
  yield create(ProfileChunkSchema, { context, profileId, version, engine });
  for await (const data of profileStore.read(context)) yield create(ProfileChunkSchema, { data });
}
