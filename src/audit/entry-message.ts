import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ActorType, type AuditLogEntry, AuditLogEntrySchema } from "../gen/pilothouse/v1/audit_pb.ts";
import type { Actor } from "../kernel/call.ts";
import { timeOfId } from "../platform/ids.ts";
import type { AuditRow } from "./store.ts";

const actorTypes = {
  user: ActorType.USER,
  key: ActorType.API_KEY,
  operator: ActorType.OPERATOR,
  service: ActorType.SYSTEM,
} satisfies Record<Actor["kind"], ActorType>;

/** Converts an entry to its public message. */
export function toEntryMessage(row: AuditRow): AuditLogEntry {
  const {
    actor_id: id,
    actor_name: name,
    request_id: requestId,
    client_address: ipAddress,
    user_agent: userAgent,
  } = row;
  return create(AuditLogEntrySchema, {
    id: row.id,
    action: row.action,
    actor: { type: actorTypes[row.actor_kind], ...(id !== null && { id }), ...(name !== null && { name }) },
    subjectId: row.subject,
    createdAt: timestampFromMs(timeOfId(row.id)),
    details: row.data,
    ...(requestId !== null && { requestId }),
    ...(ipAddress !== null && { ipAddress }),
    ...(userAgent !== null && { userAgent }),
  });
}
