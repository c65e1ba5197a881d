import { fromJson, type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import {
  BlockSchema,
  type CreateSessionRequest,
  GeolocationSchema,
  type SessionSchema,
} from "../gen/pilothouse/v1/session_pb.ts";
import type { StoredOptions } from "./tables.ts";

/** Converts options of a create request for the session's row. */
export function toStoredOptions(request: CreateSessionRequest): StoredOptions {
  const { allowedDomains, block, geolocation, webdriver } = request;
  return {
    ...(allowedDomains.length > 0 && { allowed_domains: allowedDomains }),
    ...(block && { block: toJson(BlockSchema, block) as JsonObject }),
    ...(geolocation && { geolocation: toJson(GeolocationSchema, geolocation) as JsonObject }),
    ...(webdriver === false && { webdriver }),
  };
}

/** Ignores fields that a later release has stored. */
const read = { ignoreUnknownFields: true };

/** Converts stored options to fields of the session's message. */
export function shownOptions(options: StoredOptions): MessageInitShape<typeof SessionSchema> {
  const { allowed_domains: domains, block, geolocation, webdriver = true } = options;
  return {
    ...(domains && { allowedDomains: [...domains] }),
    ...(block && { block: fromJson(BlockSchema, block, read) }),
    ...(geolocation && { geolocation: fromJson(GeolocationSchema, geolocation, read) }),
    webdriver,
  };
}
