import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Webhook, WebhookSchema } from "../gen/pilothouse/v1/webhook_pb.ts";
import type { EndpointRow } from "./endpoint-store.ts";

/** Converts an endpoint to its message, without its secret. */
export function toEndpointMessage(row: EndpointRow, now: number): Webhook {
  const { grace_expires_at: graceEnds } = row;
  const { replayed, ...deliveryCounts } = row.counts;
  return create(WebhookSchema, {
    id: row.id,
    url: row.url,
    events: row.events,
    description: row.description ?? "",
    active: row.active,
    secretPrefix: row.secret_prefix,
    consecutiveFailures: row.consecutive_failures,
    deliveryCounts,
    replayedCount: replayed,
    createdAt: timestampFromDate(row.created_at),
    updatedAt: timestampFromDate(row.updated_at),
    ...(graceEnds && graceEnds.getTime() > now && { graceExpiresAt: timestampFromDate(graceEnds) }),
  });
}
