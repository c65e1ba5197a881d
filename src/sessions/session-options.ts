import { fromJson, type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { BlockSchema, type CreateSessionRequest, type SessionSchema } from "../gen/pilothouse/v1/session_pb.ts";
import type { StoredOptions } from "./tables.ts";

/** Converts options of a create request for the session's row. */
export function toStoredOptions({ allowedDomains, block }: CreateSessionRequest): StoredOptions {
  return {
    ...(allowedDomains.length > 0 && { allowed_domains: allowedDomains }),
    ...(block && { block: toJson(BlockSchema, block) as JsonObject }),
  };
}

/** Fields that a later release stored are ignored. */
const read = { ignoreUnknownFields: true };

/** Converts stored options to fields of the session's message. */
export function shownOptions({ allowed_domains: domains, block }: StoredOptions): MessageInitShape<typeof SessionSchema> {
  return {
    ...(domains && { allowedDomains: [...domains] }),
    ...(block && { block: fromJson(BlockSchema, block, read) }),
  };
}
