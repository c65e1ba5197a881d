import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ViewportSchema } from "../gen/pilothouse/v1/common_pb.ts";
import {
  ProxySummarySchema,
  type Session,
  SessionEndedReason,
  SessionSchema,
  SessionStatus,
} from "../gen/pilothouse/v1/session_pb.ts";
import type { StoredEndedReason, StoredSessionStatus } from "./session-states.ts";
import type { SessionRow } from "./store.ts";

/** The status of a row in the contract. */
const statusMessages = {
  provisioning: SessionStatus.PROVISIONING,
  live: SessionStatus.LIVE,
  paused: SessionStatus.PAUSED,
  destroyed: SessionStatus.DESTROYED,
  errored: SessionStatus.ERRORED,
} as const satisfies Record<StoredSessionStatus, SessionStatus>;

/** The ended reason of a row in the contract. */
export const endedReasonMessages = {
  destroyed: SessionEndedReason.DESTROYED,
  expired: SessionEndedReason.EXPIRED,
  idle: SessionEndedReason.IDLE,
  quota: SessionEndedReason.QUOTA,
  crashed: SessionEndedReason.CRASHED,
  worker_lost: SessionEndedReason.WORKER_LOST,
  failed_to_start: SessionEndedReason.FAILED_TO_START,
} as const satisfies Record<StoredEndedReason, SessionEndedReason>;

/** Finds the stored status that a message means; undefined when it does not say one. */
export function toStoredStatus(message: SessionStatus): StoredSessionStatus | undefined {
  return (Object.keys(statusMessages) as StoredSessionStatus[]).find((status) => statusMessages[status] === message);
}

/** Finds the stored reason that a message means; undefined when it does not say one. */
export function toStoredReason(message: SessionEndedReason): StoredEndedReason | undefined {
  return (Object.keys(endedReasonMessages) as StoredEndedReason[]).find(
    (reason) => endedReasonMessages[reason] === message,
  );
}

/** Writes a session as the interface has it. */
export function toSessionMessage(row: SessionRow): Session {
  return create(SessionSchema, {
    id: row.id,
    status: statusMessages[row.status],
    archetype: row.archetype,
    runtime: row.runtime,
    createdAt: timestampFromDate(row.created_at),
    expiresAt: timestampFromDate(row.expires_at),
    idleTimeoutSeconds: row.idle_timeout_seconds,
    labels: row.labels,
    ...(row.profile_id !== null && { profileId: row.profile_id }),
    ...(row.live_at && { liveAt: timestampFromDate(row.live_at) }),
    ...(row.ended_at && { endedAt: timestampFromDate(row.ended_at) }),
    ...(row.ended_reason && { endedReason: endedReasonMessages[row.ended_reason] }),
    ...(row.pause_reason !== null && { pauseReason: row.pause_reason }),
    ...(row.locale !== null && { locale: row.locale }),
    ...(row.timezone !== null && { timezone: row.timezone }),
    ...proxyOf(row),
    ...viewportOf(row),
  });
}

function proxyOf({ proxy_server, proxy_username }: SessionRow) {
  if (proxy_server === null) return {};
  const username = proxy_username === null ? {} : { username: proxy_username };
  return { proxy: create(ProxySummarySchema, { server: proxy_server, ...username }) };
}

function viewportOf({ viewport_width, viewport_height, viewport_scale }: SessionRow) {
  if (viewport_width === null || viewport_height === null) return {};
  const size = { width: viewport_width, height: viewport_height, deviceScaleFactor: viewport_scale ?? 1 };
  return { viewport: create(ViewportSchema, size) };
}
