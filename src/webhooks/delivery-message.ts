import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type WebhookAttempt,
  WebhookAttemptSchema,
  type WebhookDelivery,
  WebhookDeliverySchema,
  WebhookDeliveryStatus,
} from "../gen/pilothouse/v1/webhook_pb.ts";
import type { DeliveryRow } from "./delivery-store.ts";
import type { DeliveryStatus, StoredAttempt } from "./tables.ts";

const statuses = {
  pending: WebhookDeliveryStatus.PENDING,
  delivered: WebhookDeliveryStatus.DELIVERED,
  failed: WebhookDeliveryStatus.FAILED,
  dlq: WebhookDeliveryStatus.DLQ,
} satisfies Record<DeliveryStatus, WebhookDeliveryStatus>;

/** Converts a status filter; unspecified becomes undefined. */
export function toDeliveryStatus(status: WebhookDeliveryStatus): DeliveryStatus | undefined {
  return (Object.keys(statuses) as DeliveryStatus[]).find((name) => statuses[name] === status);
}

function toAttemptMessage(attempt: StoredAttempt): WebhookAttempt {
  const { response_status: responseStatus, response_body: responseBody, error } = attempt;
  return create(WebhookAttemptSchema, {
    number: attempt.number,
    startedAt: timestampFromDate(new Date(attempt.started_at)),
    durationMs: attempt.duration_ms,
    ...(responseStatus !== undefined && { responseStatus }),
    ...(responseBody !== undefined && { responseBody }),
    ...(error !== undefined && { error }),
  });
}

export function toDeliveryMessage(row: DeliveryRow): WebhookDelivery {
  const attempts = row.attempts.map(toAttemptMessage);
  const { responseStatus, responseBody } = attempts.at(-1) ?? {};
  return create(WebhookDeliverySchema, {
    id: row.id,
    webhookId: row.endpoint_id,
    eventId: row.event_id,
    eventType: row.event_type,
    status: statuses[row.status],
    attempts,
    createdAt: timestampFromDate(row.created_at),
    ...(row.next_attempt_at && { nextAttemptAt: timestampFromDate(row.next_attempt_at) }),
    ...(row.replay_of !== null && { replayOf: row.replay_of }),
    ...(row.delivered_at && { deliveredAt: timestampFromDate(row.delivered_at) }),
    ...(responseStatus !== undefined && { responseStatus }),
    ...(responseBody !== undefined && { responseBody }),
    ...(row.reason !== null && { reason: row.reason }),
  });
}
