import { addEntry } from "../../events/transcript.ts";
import { TranscriptRole } from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import type { JobQueues } from "../../jobs/job-queues.ts";
import { defineJob, type JobKind } from "../../kernel/job-kind.ts";
import { asFailure, fail } from "../../platform/errors.ts";
import type { Log } from "../../platform/log.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import type { DueTask } from "../../platform/postgres/due-tasks.ts";
import { isKeyLost } from "../../platform/secrets/secrets-sealer.ts";
import { activeTraceparent, inSpan, inTraceOf } from "../../platform/traces/spans.ts";
import type { NewRecipeTurn } from "../sessions/creation.ts";
import type { AgentSessionRow } from "../sessions/store.ts";
import { sealPlan } from "./recipe-plan.ts";
import {
  findLostTurns,
  findOrphans,
  insertTurn,
  type NewTurn,
  recordTurnHeartbeats,
  turnsAreAbandoned,
} from "./store.ts";
import type { RecipeProgress } from "./tables.ts";
import { limitsOf } from "./turn-columns.ts";
import { endTurn, entryOf, ownerOf, type TurnEnd } from "./turn-end.ts";
import type { TurnParts } from "./turn-parts.ts";
import { createTurnRunner, endOfSession, type TurnRunner } from "./turn-run.ts";

export interface AgentTurnsParts extends TurnParts {
  readonly jobQueues: JobQueues;
  readonly log: Log;
}

export interface AgentTurns extends Pick<TurnRunner, "observeAhead"> {
  readonly jobKind: JobKind<TurnJob>;
  /** Ends abandoned turns. */
  readonly sweep: DueTask;
  /** Starts a turn after the commit. If the request header carried the key, the turn runs on this gateway. */
  begin(tx: Tx, turn: NewTurn, header: string | undefined): void;
  /** Inserts a recipe turn, which starts after the commit. */
  beginRecipe(tx: Tx, agent: AgentSessionRow, turn: NewRecipeTurn): Promise<void>;
}

interface TurnJob {
  readonly turnId: string;
  /** W3C trace context of the request that started the turn. The turn continues its trace. */
  readonly traceparent?: string;
}

/** Milliseconds until the job of a turn times out. A turn works for at most one day, plus waits for people. */
const maxTurnMs = 7 * 86_400_000;

/** Milliseconds between attempts after an internal failure. Committed steps are not repeated. */
const schedule = [500, 2_000, 10_000];

/**
 * Milliseconds. `every`: between heartbeats of a gateway that holds a turn's key in memory. `lost`: after the last
 * heartbeat, until the key counts as lost.
 */
const heartbeatMs = { period: 2_000, lost: 8_000 };

const firstStep: RecipeProgress = { step: 0, attempt: 0, isBroken: false };

/**
 * Returns how an unexpected error ends the turn. Reports the cause only if an encryption key is lost, which the
 * operator can fix.
 */
const failedBy = (error: unknown): TurnEnd => ({
  status: "failed",
  reason: "internal",
  failure: isKeyLost(error) ? asFailure(error) : fail("internal"),
});

const keyLost: TurnEnd = {
  status: "failed",
  reason: "byok-llm-required",
  failure: fail(
    "byok-llm-required",
    {},
    { detail: "the LLM key of the request was lost, because its gateway stopped: send the message again" },
  ),
};

export function createAgentTurns(parts: AgentTurnsParts): AgentTurns {
  const { db, clock, log } = parts;
  const lostBefore = () => new Date(clock.now() - heartbeatMs.lost);
  const { run, observeAhead, readAhead } = createTurnRunner(parts);

  const jobKind = defineJob<TurnJob>({
    kind: "agent_turn",
    width: 1,
    schedule,
    timeout: maxTurnMs,
    async run({ data, attempt }, signal) {
      try {
        await inTraceOf(data.traceparent ?? "", "agent turn", {}, () => run(data.turnId, signal));
      } catch (error) {
        if (signal.aborted || attempt <= schedule.length) throw error;
        log.error({ err: error, turn_id: data.turnId }, "failed to run agent turn");
        await endTurn(parts, data.turnId, failedBy(error));
      }
    },
  });

  /** Runs a turn on this gateway, because the turn's key is only in memory and is not stored with a job. */
  async function runHere(turnId: string, header: string): Promise<void> {
    const beatOnce = () => void recordTurnHeartbeats(db, [turnId], new Date(clock.now())).catch(() => undefined);
    const stopHeartbeats = clock.every(heartbeatMs.period, beatOnce);
    try {
      await inSpan("agent turn", {}, () => run(turnId, new AbortController().signal, header));
    } catch (error) {
      log.error({ err: error, turn_id: turnId }, "failed to run agent turn");
      await endTurn(parts, turnId, failedBy(error)).catch(() => undefined);
    } finally {
      stopHeartbeats();
    }
  }

  function begin(tx: Tx, turn: NewTurn, header: string | undefined): void {
    const { id: turnId } = turn;
    const traceparent = activeTraceparent();
    const data = { turnId, ...(traceparent !== undefined && { traceparent }) };
    tx.afterCommit(() => readAhead(turnId));
    if (header !== undefined) tx.afterCommit(() => void runHere(turnId, header));
    else parts.jobQueues.enqueue(tx, jobKind, { queue: turn.agent_session_id, owner: turn.account_id, data });
  }

  return {
    jobKind,
    begin,
    observeAhead,
    async beginRecipe(tx, agent, { id, recipe }) {
      const { account_id: accountId, session_id } = agent;
      const now = new Date(clock.now());
      const row = insertTurn(tx, {
        id,
        agent_session_id: agent.id,
        account_id: accountId,
        session_id,
        created_at: now,
        credential: "none",
        provider: "",
        model: "",
        limits: limitsOf(agent),
        recipe: JSON.stringify(firstStep),
        recipe_plan: sealPlan(parts.sealer, accountId, recipe),
      });
      const content = {
        case: "text" as const,
        value: { text: `The recipe ${JSON.stringify(recipe.name)} has started.` },
      };
      const entry = { id: parts.ids.next("evt"), ...entryOf(row), role: TranscriptRole.SYSTEM, content };
      await addEntry(tx, parts.events, ownerOf(row), entry, now);
      begin(tx, row, undefined);
    },
    sweep: {
      isDue: () => turnsAreAbandoned(lostBefore()),
      async run() {
        for (const id of await findLostTurns(db, lostBefore())) await endTurn(parts, id, keyLost);
        for (const { id, ended_reason: reason } of await findOrphans(db))
          await endTurn(parts, id, endOfSession(reason));
      },
      failureMessage: "failed to end abandoned agent turns",
    },
  };
}
