import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CreateSessionRequest, SessionSchema } from "../gen/pilothouse/v1/session_pb.ts";
import type { StoredOptions } from "./tables.ts";

/** Converts options of a create request for the session's row. */
export function toStoredOptions({ allowedDomains }: CreateSessionRequest): StoredOptions {
  return { ...(allowedDomains.length > 0 && { allowed_domains: allowedDomains }) };
}

/** Converts stored options to fields of the session's message. */
export function shownOptions({ allowed_domains: domains }: StoredOptions): MessageInitShape<typeof SessionSchema> {
  return { ...(domains && { allowedDomains: [...domains] }) };
}
