import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { toLogLevel } from "../accounts/settings.ts";
import { ViewportSchema } from "../gen/pilothouse/v1/common_pb.ts";
import {
  ProxySummarySchema,
  type Session,
  SessionEndedReason,
  SessionSchema,
  SessionStatus,
} from "../gen/pilothouse/v1/session_pb.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import { shownOptions } from "./session-options.ts";
import type { SessionRow } from "./store.ts";

/** Converts statuses between rows and messages; unspecified becomes undefined. */
export const { toMessage: toStatusMessage, toStored: toStoredStatus } = storedNames(SessionStatus);

/** Converts ended reasons between rows and messages; unspecified becomes undefined. */
export const { toMessage: toReasonMessage, toStored: toStoredReason } = storedNames(SessionEndedReason);

export function toSessionMessage(row: SessionRow): Session {
  return create(SessionSchema, {
    id: row.id,
    status: toStatusMessage(row.status),
    archetype: row.archetype,
    runtime: row.runtime,
    createdAt: timestampFromDate(row.created_at),
    expiresAt: timestampFromDate(row.expires_at),
    idleTimeoutSeconds: row.idle_timeout_seconds,
    labels: row.labels,
    ...(row.profile_id !== null && { profileId: row.profile_id }),
    ...(row.live_at && { liveAt: timestampFromDate(row.live_at) }),
    ...(row.ended_at && { endedAt: timestampFromDate(row.ended_at) }),
    ...(row.ended_reason && { endedReason: toReasonMessage(row.ended_reason) }),
    ...(row.pause_reason !== null && { pauseReason: row.pause_reason }),
    ...(row.locale !== null && { locale: row.locale }),
    ...(row.timezone !== null && { timezone: row.timezone }),
    ...shownOptions(row.options),
    ...(row.logs !== null && { logs: toLogLevel(row.logs) }),
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
