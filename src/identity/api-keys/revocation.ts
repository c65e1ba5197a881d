import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { EventLog } from "../../events/event-log.ts";
import { ApiKeyRevokedEventSchema } from "../../gen/pilothouse/v1/api_key_pb.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import type { ApiKeys } from "./api-keys.ts";
import { keyPrefixOf } from "./key-message.ts";
import type { ApiKeyRow } from "./store.ts";

export interface RevocationParts {
  readonly apiKeys: Pick<ApiKeys, "revoke">;
  readonly events: EventLog;
  readonly clock: Clock;
}

/**
 * Revokes a key and appends the event. Returns false if the key was already revoked. `by` is the identifier of the user
 * or key that requested the revocation.
 */
export async function revokeWithEvent(
  { apiKeys, events, clock }: RevocationParts,
  tx: Tx,
  { id, account_id: accountId, name }: Pick<ApiKeyRow, "id" | "account_id" | "name">,
  by?: string,
): Promise<boolean> {
  if (!(await apiKeys.revoke(tx, id))) return false;
  const revokedAt = timestampFromMs(clock.now());
  const data = {
    apiKeyId: id,
    name,
    keyPrefix: keyPrefixOf(id),
    revokedAt,
    ...(by !== undefined && { revokedBy: by }),
  };
  const event = create(ApiKeyRevokedEventSchema, data);
  await events.append(tx, { accountId, subject: id }, ApiKeyRevokedEventSchema, event);
  return true;
}
