import { create, type JsonObject } from "@bufbuild/protobuf";
import type { EventLog } from "../../events/event-log.ts";
import { addEntry } from "../../events/transcript.ts";
import { AgentSessionTurnEndedEventSchema, TranscriptRole } from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import type { Bus } from "../../platform/bus.ts";
import type { Clock } from "../../platform/clock.ts";
import { type Failure, fail } from "../../platform/errors.ts";
import type { Ids } from "../../platform/ids.ts";
import type { Database, Tx } from "../../platform/postgres/database.ts";
import { problemJson, toProblem } from "../../platform/problem.ts";
import { lockTurn, type NewTurn, type TurnRow, updateTurn } from "./store.ts";
import type { StoredTurnStatus } from "./tables.ts";
import { afterWait, toTurnMessage, usageOf } from "./turn-message.ts";
import type { TurnMetrics } from "./turn-metrics.ts";

export interface TurnEndParts {
  readonly db: Database;
  readonly events: EventLog;
  readonly bus: Bus;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly turnMetrics: TurnMetrics;
  readonly config: { readonly errorsBase: string };
}

export interface TurnEnd {
  readonly status: Extract<StoredTurnStatus, "done" | "failed" | "cancelled" | "limit_reached">;
  readonly reason?: string;
  /** Final answer of the agent. */
  readonly text?: string;
  /** Result, which matches the requested schema. */
  readonly output?: JsonObject;
  /** Failure with an entry in the errors table. */
  readonly failure?: Failure;
  /** Description of a failure caused by the model or its provider. */
  readonly modelFault?: string;
}

/** Returns how a turn ends when the model finishes: as failed if a recipe step is still broken. */
export function endOfAnswer({ recipe }: TurnRow, text: string): TurnEnd {
  if (!recipe) return { status: "done", text };
  const failure = fail("driver-error", {}, { detail: "a step of the recipe failed and was not repaired" });
  return { status: "failed", reason: "recipe_step_failed", text, failure };
}

/** A problem without a type of its own (RFC 9457, section 4.2.1): the `reason` of the turn names the cause. */
const modelProblem = (detail: string, turnId: string): JsonObject => ({
  type: "about:blank",
  title: "Bad Gateway",
  status: 502,
  detail,
  instance: turnId,
});

/** Owner of the transcript entries of a turn. */
export const ownerOf = (turn: NewTurn | TurnRow) => ({
  accountId: turn.account_id,
  sessionId: turn.session_id,
  agentSessionId: turn.agent_session_id,
});

/** Fields common to the transcript entries of a turn. */
export const entryOf = (turn: NewTurn | TurnRow) => ({ turnId: turn.id, ...usageOf(turn) });

export async function endLockedTurn(parts: TurnEndParts, tx: Tx, turn: TurnRow, end: TurnEnd): Promise<TurnRow> {
  const { events, bus, ids, clock, config, turnMetrics } = parts;
  const { status, reason = null, text = null, output, failure, modelFault } = end;
  const now = new Date(clock.now());
  const problem = failure
    ? problemJson(toProblem(failure, config.errorsBase, turn.id))
    : modelFault !== undefined && modelProblem(modelFault, turn.id);
  const ended = await updateTurn(tx, turn.id, {
    status,
    reason,
    answer: text,
    waits_until: null,
    ...afterWait(turn, now.getTime()),
    beat_at: null,
    ended_at: now,
    recipe_plan: null,
    ...(output && { output: JSON.stringify(output) }),
    ...(problem && { error: JSON.stringify(problem) }),
  });
  if (text !== null && text !== "") {
    const content = { case: "text" as const, value: { text, ...(output && { output }) } };
    const entry = { id: ids.next("evt"), ...entryOf(turn), role: TranscriptRole.AGENT, content };
    await addEntry(tx, events, ownerOf(turn), entry, now);
  }
  const data = { agentSessionId: turn.agent_session_id, turn: toTurnMessage(ended) };
  const event = create(AgentSessionTurnEndedEventSchema, data);
  const owner = { accountId: turn.account_id, subject: turn.session_id };
  await events.append(tx, owner, AgentSessionTurnEndedEventSchema, event);
  tx.afterCommit(() => {
    turnMetrics.count(ended);
    bus.publish("turn-changed", turn.id);
    // Gateways renew the cached route, so that clients may act on the page again.
    bus.publish("session-changed", turn.session_id);
  });
  return ended;
}

/** Ends a turn and returns it; undefined if the turn has ended already. */
export async function endTurn(parts: TurnEndParts, id: string, end: TurnEnd): Promise<TurnRow | undefined> {
  return parts.db.transaction(async (tx) => {
    const turn = await lockTurn(tx, id);
    return turn && endLockedTurn(parts, tx, turn, end);
  });
}
