import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Profile, ProfileSchema } from "../gen/pilothouse/v1/profile_pb.ts";
import type { ProfileRow } from "./store.ts";

export function toProfileMessage(row: ProfileRow): Profile {
  return create(ProfileSchema, {
    id: row.id,
    name: row.name,
    labels: row.labels,
    sizeBytes: BigInt(row.size_bytes),
    createdAt: timestampFromDate(row.created_at),
    updatedAt: timestampFromDate(row.updated_at),
    ...(row.description !== null && { description: row.description }),
    ...(row.engine !== null && { engine: row.engine }),
    ...(row.active_session_id !== null && { activeSessionId: row.active_session_id }),
    ...(row.saved_at && { savedAt: timestampFromDate(row.saved_at) }),
  });
}
