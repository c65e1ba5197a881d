import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type ApiKey, ApiKeySchema, ApiKeyStatus } from "../gen/pilothouse/v1/api_key_pb.ts";
import type { ApiKeyRow, KeyStatus } from "./store.ts";

const statuses = {
  active: ApiKeyStatus.ACTIVE,
  expiring: ApiKeyStatus.EXPIRING,
  expired: ApiKeyStatus.EXPIRED,
  revoked: ApiKeyStatus.REVOKED,
} satisfies Record<KeyStatus, ApiKeyStatus>;

/** Tells what a key is at a time. */
export function statusOf(row: ApiKeyRow, now: number): KeyStatus {
  if (row.revoked_at) return "revoked";
  if (row.expires_at && row.expires_at.getTime() <= now) return "expired";
  return row.rotated_to === null ? "active" : "expiring";
}

/** Reads a status that a list is narrowed down by. */
export function toKeyStatus(status: ApiKeyStatus): KeyStatus | undefined {
  return (Object.keys(statuses) as KeyStatus[]).find((name) => statuses[name] === status);
}

/** How a key begins, to tell keys apart. */
export function prefixOf(id: string): string {
  return `phk_${id.slice("key_".length, "key_".length + 12)}`;
}

/** Writes a key as the interface has it, without its secret. */
export function toKeyMessage(row: ApiKeyRow, now: number): ApiKey {
  return create(ApiKeySchema, {
    id: row.id,
    name: row.name,
    keyPrefix: prefixOf(row.id),
    scopes: row.scopes,
    status: statuses[statusOf(row, now)],
    createdAt: timestampFromDate(row.created_at),
    addresses: row.addresses,
    ...(row.created_by !== null && { createdBy: row.created_by }),
    ...(row.rotated_to !== null && { rotatedTo: row.rotated_to }),
    ...(row.last_used_at && { lastUsedAt: timestampFromDate(row.last_used_at) }),
    ...(row.expires_at && { expiresAt: timestampFromDate(row.expires_at) }),
    ...(row.revoked_at && { revokedAt: timestampFromDate(row.revoked_at) }),
  });
}
