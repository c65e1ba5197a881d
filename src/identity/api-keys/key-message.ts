import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type ApiKey, ApiKeySchema, ApiKeyStatus } from "../../gen/pilothouse/v1/api_key_pb.ts";
import { storedNames } from "../../platform/rest-json/field-names.ts";
import type { ApiKeyRow, KeyStatus } from "./store.ts";

const { toMessage, toStored } = storedNames(ApiKeyStatus);

/** Converts the status filter of a list. Returns undefined if unspecified. */
export const toKeyStatus = toStored;

/** Returns the status of a key at a time. */
export function keyStatusOf(row: ApiKeyRow, now: number): KeyStatus {
  if (row.revoked_at) return "revoked";
  if (row.expires_at && row.expires_at.getTime() <= now) return "expired";
  return row.rotated_to === null ? "active" : "expiring";
}

/** Returns the start of a key's text, which identifies the key to people. */
export function keyPrefixOf(id: string): string {
  return `phk_${id.slice("key_".length, "key_".length + 12)}`;
}

/** Converts a key to its message, without its secret. */
export function toApiKeyMessage(row: ApiKeyRow, now: number): ApiKey {
  return create(ApiKeySchema, {
    id: row.id,
    name: row.name,
    keyPrefix: keyPrefixOf(row.id),
    scopes: row.scopes,
    status: toMessage(keyStatusOf(row, now)),
    createdAt: timestampFromDate(row.created_at),
    addresses: row.addresses,
    ...(row.created_by !== null && { createdBy: row.created_by }),
    ...(row.created_by_key !== null && { createdByKey: row.created_by_key }),
    ...(row.rotated_to !== null && { rotatedTo: row.rotated_to }),
    ...(row.last_used_at && { lastUsedAt: timestampFromDate(row.last_used_at) }),
    ...(row.expires_at && { expiresAt: timestampFromDate(row.expires_at) }),
    ...(row.revoked_at && { revokedAt: timestampFromDate(row.revoked_at) }),
  });
}
