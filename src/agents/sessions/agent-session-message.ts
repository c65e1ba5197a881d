import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  AgentMode,
  type AgentSession,
  AgentSessionSchema,
  type TurnLimits,
} from "../../gen/pilothouse/v1/agent_session_pb.ts";
import { SessionStatus } from "../../gen/pilothouse/v1/session_pb.ts";
import { toControlMessage } from "../../sessions/session-control.ts";
import { toReasonMessage, toStatusMessage } from "../../sessions/session-message.ts";
import type { AgentSessionRow } from "./store.ts";
import type { StoredAgentMode, StoredTurnLimits } from "./tables.ts";

/** Converts a mode to its stored name; unspecified becomes `pair`. */
export const toStoredMode = (mode: AgentMode): StoredAgentMode => (mode === AgentMode.AGENT ? "agent" : "pair");

export const toModeMessage = (mode: StoredAgentMode): AgentMode =>
  mode === "agent" ? AgentMode.AGENT : AgentMode.PAIR;

/** Returns only the limits that the request has set. */
export function toStoredLimits({ steps, seconds, tokens, costCents }: TurnLimits): Partial<StoredTurnLimits> {
  return {
    ...(steps !== undefined && { steps }),
    ...(seconds !== undefined && { seconds }),
    ...(tokens !== undefined && { tokens }),
    ...(costCents !== undefined && { costCents }),
  };
}

/**
 * Returns when and why an agent session ended: on its own, or else with its browser session. `ended_at` and
 * `ended_reason` are null while the agent session runs.
 */
export function agentSessionEnd(row: AgentSessionRow) {
  const isOwn = row.ended_at !== null;
  return {
    live_at: row.live_at,
    ended_at: row.ended_at ?? row.session_ended_at,
    ended_reason: isOwn ? ("destroyed" as const) : row.ended_reason,
  };
}

export function toAgentSessionMessage(row: AgentSessionRow): AgentSession {
  const { ended_at: endedAt, ended_reason: endedReason } = agentSessionEnd(row);
  return create(AgentSessionSchema, {
    id: row.id,
    sessionId: row.session_id,
    ownsSession: row.owns_session,
    status: row.ended_at === null ? toStatusMessage(row.status) : SessionStatus.DESTROYED,
    mode: toModeMessage(row.mode),
    control: toControlMessage(row),
    archetype: row.archetype,
    labels: row.labels,
    allowedDomains: row.allowed_domains,
    variableNames: row.variable_names,
    createdAt: timestampFromDate(row.created_at),
    expiresAt: timestampFromDate(row.expires_at),
    ...(row.profile_id !== null && { profileId: row.profile_id }),
    ...(row.instructions !== null && { instructions: row.instructions }),
    ...(row.model !== null && { model: row.model }),
    ...(row.recipe_id !== null && { recipeId: row.recipe_id }),
    ...(row.limits !== null && { limits: row.limits }),
    ...(row.turn_id !== null && { runningTurnId: row.turn_id }),
    ...(endedAt && { endedAt: timestampFromDate(endedAt) }),
    ...(endedReason && { endedReason: toReasonMessage(endedReason) }),
  });
}
