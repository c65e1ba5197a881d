import { raceSignal } from "../../platform/deadline.ts";
import { asFailure } from "../../platform/errors.ts";
import type { SessionCaller } from "../../sessions/commands/session-caller.ts";
import { findControl } from "../../sessions/control/store.ts";
import { isEnded } from "../../sessions/session-states.ts";
import type { AgentSessionRow } from "../sessions/store.ts";
import { ConversationCache } from "./conversation-cache.ts";
import { callerFor, createRun } from "./create-run.ts";
import { readCredential } from "./model-call.ts";
import { createPage } from "./page.ts";
import { yieldToPerson } from "./person-wait.ts";
import { ReadAhead } from "./read-ahead.ts";
import { resumeRecipe, runRecipeStep } from "./recipe-run.ts";
import { findTurn, readAgent, readAgentOfTurn, TurnEnded, type TurnRow } from "./store.ts";
import { describePageOrFailure, runToolCall } from "./tool-call.ts";
import { limitReached } from "./turn-columns.ts";
import { endLockedTurn, type TurnEnd } from "./turn-end.ts";
import type { Run, TurnParts } from "./turn-parts.ts";
import { needsPage, runModelStep } from "./turn-question.ts";

export interface TurnRunner {
  run(turnId: string, signal: AbortSignal, header?: string): Promise<void>;
  /** Starts observing the page for the first step of a turn that has not started yet. */
  observeAhead(turnId: string, agent: AgentToObserve, principal: Principal): void;
  /** Starts reading the rows of a turn that was just committed. */
  readAhead(turnId: string): void;
}

type AgentToObserve = Pick<AgentSessionRow, "id" | "session_id" | "variable_names">;
type Principal = SessionCaller["principal"];

/** Creates the runner of turns. Each step is derived from the rows, so any gateway can resume any turn. */
export function createTurnRunner(parts: TurnParts): TurnRunner {
  const { db, bus, clock } = parts;
  const conversations = new ConversationCache();
  const pagesAhead = new ReadAhead<string>(clock);
  const readRows = (turnId: string) => Promise.all([findTurn(db, turnId), readAgentOfTurn(db, turnId)]);
  const rowsAhead = new ReadAhead<Awaited<ReturnType<typeof readRows>>>(clock);
  // A turn that ends before its run must be read again.
  bus.subscribe("turn-changed", (turnId) => rowsAhead.drop(turnId));

  const end = (run: Run, how: TurnEnd) => run.write((tx, turn) => endLockedTurn(parts, tx, turn, how));

  const openPage = async (turn: TurnRow, run: Run): Promise<string> =>
    (await raceSignal(pagesAhead.take(turn.id), run.signal)) ?? describePageOrFailure(run);

  /** Runs one step, and returns the turn as changed by the step. */
  async function step(turn: TurnRow, run: Run): Promise<TurnRow | undefined> {
    // The page is observed and the credential is read while the other rows are read.
    const isFirst = needsPage(turn);
    const page = isFirst ? openPage(turn, run) : undefined;
    const credential = isFirst ? readCredential(parts, turn, run) : undefined;
    for (const early of [page, credential]) early?.catch(() => undefined);
    const controlRead = findControl(db, turn.session_id, turn.account_id);
    const [control, conversation] = await Promise.all([controlRead, run.conversation()]);
    if (!control || isEnded(control.status)) return end(run, endOfSession(control?.ended_reason));
    const waited = await yieldToPerson(parts, turn, run, control);
    if (waited !== "continue") return waited;
    const [call, ...rest] = conversation.pending;
    if (call?.name === "resume_recipe") return resumeRecipe(parts, run, call, rest);
    if (call) return runToolCall(parts, turn, run, conversation, call);
    const limit = limitReached(turn);
    const { recipe } = turn;
    // A recipe step uses no model steps or tokens, so only the time limit applies.
    if (recipe && !recipe.isBroken && limit !== "seconds")
      return runRecipeStep(parts, turn, run, control.control_epoch, recipe);
    if (limit !== undefined) return end(run, { status: "limit_reached", reason: limit });
    return runModelStep(parts, turn, run, conversation, { epoch: control.control_epoch, page, credential });
  }

  async function run(turnId: string, signal: AbortSignal, header?: string): Promise<void> {
    const over = new AbortController();
    const unsubscribe = bus.subscribe("turn-changed", (id) => {
      if (id !== turnId) return;
      const check = async () => {
        if ((await findTurn(db, turnId))?.ended_at !== null) over.abort(new TurnEnded());
      };
      // If this check fails, the next step notices the end.
      check().catch(() => undefined);
    });
    try {
      const [found, agent] = (await rowsAhead.take(turnId)) ?? (await readRows(turnId));
      if (!found || !agent) return;
      let turn: TurnRow | undefined = found;
      const made = createRun(parts, conversations, turn, {
        agent,
        aborted: AbortSignal.any([signal, over.signal]),
        header,
      });
      while (turn && turn.ended_at === null) {
        made.signal.throwIfAborted();
        turn = await step(turn, made).catch((error: unknown) => {
          // The session has ended, which the next step notices.
          if (asFailure(error).slug !== "session-destroyed") throw error;
          return findTurn(db, turnId);
        });
      }
      await made.cacheConversation();
    } catch (error) {
      if (!(error instanceof TurnEnded) && !over.signal.aborted) throw error;
    } finally {
      unsubscribe();
    }
  }

  return {
    run,
    readAhead: (turnId) => rowsAhead.add(turnId, readRows(turnId)),
    observeAhead(turnId, { id, session_id, variable_names: names }, principal) {
      const describe = async () => {
        const variables = names.length > 0 ? (await readAgent(db, id)).variables : null;
        const caller = callerFor(parts, turnId, principal, variables, new AbortController().signal);
        return createPage(parts.sessions, session_id).describe(caller());
      };
      pagesAhead.add(turnId, describe());
    },
  };
}

/** Returns how a turn ends if its browser session has ended. Without a reason, only its agent session has ended. */
export function endOfSession(reason: string | null | undefined): TurnEnd {
  const isOrderly = reason === "destroyed" || reason === null || reason === undefined;
  return { status: isOrderly ? "cancelled" : "failed", reason: isOrderly ? "session_ended" : reason };
}
