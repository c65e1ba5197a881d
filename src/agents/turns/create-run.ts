import { activeTraceparent } from "../../platform/traces/spans.ts";
import type { SessionCaller } from "../../sessions/commands/session-caller.ts";
import { openVariables } from "../sessions/variables.ts";
import type { ConversationCache } from "./conversation-cache.ts";
import { ModelConversation, type WaitingMessage } from "./model-conversation.ts";
import { openMessage } from "./model-messages.ts";
import { createPage } from "./page.ts";
import { lockTurn, readMessages, readSummaries, TurnEnded, type TurnRow } from "./store.ts";
import { openSummary } from "./summary.ts";
import type { Run, RunAgent, TurnParts } from "./turn-parts.ts";

type Principal = SessionCaller["principal"];

/** Returns a function that creates the caller of the turn's commands, with the active trace context. */
export function callerFor(
  { sealer }: TurnParts,
  turnId: string,
  principal: Principal,
  sealed: Buffer | null,
  signal: AbortSignal,
) {
  const variables = openVariables(sealer, principal.accountId, sealed);
  const base = { principal, signal, deadline: Number.POSITIVE_INFINITY, requestId: turnId, variables };
  return (): SessionCaller => ({ ...base, traceparent: activeTraceparent() ?? "" });
}

/** Creates the state of a run. The run is aborted if `aborted` aborts or a transaction of `writeBehind` fails. */
export function createRun(
  parts: TurnParts,
  conversations: ConversationCache,
  turn: TurnRow,
  { agent, aborted, header }: { agent: RunAgent; aborted: AbortSignal; header: string | undefined },
): Run {
  const { db, sealer } = parts;
  const { agent_session_id: agentSessionId } = turn;
  const { tier, overrides } = agent;
  const principal = { accountId: turn.account_id, tier, overrides };
  let conversation = conversations.take(agentSessionId) ?? new ModelConversation();
  let areSummariesRead = false;
  let written: Promise<unknown> = Promise.resolve();
  const failed = new AbortController();
  const signal = AbortSignal.any([aborted, failed.signal]);
  const write: Run["write"] = async (work) => {
    await written;
    return db.transaction(async (tx) => {
      const locked = await lockTurn(tx, turn.id);
      if (!locked) throw new TurnEnded();
      return work(tx, locked);
    });
  };
  const caller = callerFor(parts, turn.id, principal, agent.variables, signal);
  let mark = performance.now();
  return {
    signal,
    header,
    agent,
    page: createPage(parts.sessions, turn.session_id),
    caller: (stepId) => ({ ...caller(), ...(stepId !== undefined && { stepId }) }),
    write,
    writeBehind(work) {
      written = write(work);
      written.catch((error: unknown) => failed.abort(error));
    },
    async conversation() {
      const { position: last } = conversation;
      const [rows, summaries] = await Promise.all([
        readMessages(db, agentSessionId, last),
        // Later summaries are added to `conversation` by this run itself.
        areSummariesRead ? [] : readSummaries(db, agentSessionId, last),
      ]);
      areSummariesRead = true;
      for (const each of summaries)
        conversation.addSummary(each.position, openSummary(sealer, turn.account_id, each.sealed));
      const waiting: WaitingMessage[] = [];
      for (const { id, position, sealed } of rows) {
        const message = openMessage(sealer, turn.account_id, sealed);
        if (position === null) waiting.push({ id, message });
        else conversation.add(position, message);
      }
      conversation.waiting = waiting;
      return conversation;
    },
    dropConversation() {
      conversation = new ModelConversation();
      areSummariesRead = false;
    },
    async cacheConversation() {
      await written;
      conversations.keep(agentSessionId, conversation);
    },
    takeElapsedMs() {
      const took = performance.now() - mark;
      mark += took;
      return Math.round(took);
    },
  };
}
