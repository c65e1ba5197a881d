import { sleep } from "../../platform/bounded-wait.ts";
import { raceSignal } from "../../platform/deadline.ts";
import { asFailure } from "../../platform/errors.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { activeTraceparent } from "../../platform/traces/spans.ts";
import type { SessionCaller } from "../../sessions/commands/session-caller.ts";
import { type ControlRow, findControl } from "../../sessions/control/store.ts";
import { isEnded } from "../../sessions/session-states.ts";
import type { AgentSessionRow } from "../sessions/store.ts";
import { openVariables } from "../sessions/variables.ts";
import { ConversationCache } from "./conversation-cache.ts";
import { readCredential } from "./model-call.ts";
import { ModelConversation, type WaitingMessage } from "./model-conversation.ts";
import { noteMessage, openMessage, resultMessage, sealMessage, type ToolCall } from "./model-messages.ts";
import { createPage } from "./page.ts";
import { ReadAhead } from "./read-ahead.ts";
import { resumeRecipe, takeRecipeStep } from "./recipe-run.ts";
import {
  findTurn,
  insertMessage,
  lockTurn,
  readAgent,
  readAgentOfTurn,
  readMessages,
  readSummaries,
  TurnOver,
  type TurnRow,
  updateTurn,
} from "./store.ts";
import { openSummary } from "./summary.ts";
import { describePageOrFailure, doCall } from "./tool-call.ts";
import { limitReached } from "./turn-columns.ts";
import { endLockedTurn, type TurnEnd } from "./turn-end.ts";
import { afterWait } from "./turn-message.ts";
import type { Run, RunAgent, TurnParts } from "./turn-parts.ts";
import { askInTurn, needsPage } from "./turn-question.ts";

/** Milliseconds between checks while a turn waits for a person. */
const pollEvery = 500;

export interface TurnRunner {
  run(turnId: string, signal: AbortSignal, header?: string): Promise<void>;
  /** Begins to observe the page for the first step of a turn that is about to begin. */
  observeAhead(turnId: string, agent: AgentToObserve, principal: Principal): void;
  /** Begins to read the rows of a turn that was just committed. */
  readAhead(turnId: string): void;
}

type AgentToObserve = Pick<AgentSessionRow, "id" | "session_id" | "variable_names">;
type Principal = SessionCaller["principal"];

/** Creates the runner of turns. Each step is derived from the rows, so any gateway can resume any turn. */
export function createTurnRunner(parts: TurnParts): TurnRunner {
  const { db, bus, sealer, clock } = parts;
  const conversations = new ConversationCache();
  const pagesAhead = new ReadAhead<string>(clock);
  const readRows = (turnId: string) => Promise.all([findTurn(db, turnId), readAgentOfTurn(db, turnId)]);
  const rowsAhead = new ReadAhead<Awaited<ReturnType<typeof readRows>>>(clock);
  // A turn that ends before its run must be read again.
  bus.subscribe("turn-changed", (turnId) => rowsAhead.drop(turnId));

  /** Creates the function that returns the caller of the turn's commands, as part of the active trace. */
  function callerFor(turnId: string, principal: Principal, sealed: Buffer | null, signal: AbortSignal) {
    const variables = openVariables(sealer, principal.accountId, sealed);
    const base = { principal, signal, deadline: Number.POSITIVE_INFINITY, requestId: turnId, variables };
    return (): SessionCaller => ({ ...base, traceparent: activeTraceparent() ?? "" });
  }

  function makeRun(turn: TurnRow, agent: RunAgent, aborted: AbortSignal, header: string | undefined): Run {
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
        if (!locked) throw new TurnOver();
        return work(tx, locked);
      });
    };
    const caller = callerFor(turn.id, principal, agent.variables, signal);
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
          // Within a run, the run itself adds the summaries.
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
      forget() {
        conversation = new ModelConversation();
        areSummariesRead = false;
      },
      async keep() {
        await written;
        conversations.keep(agentSessionId, conversation);
      },
      takeTime() {
        const took = performance.now() - mark;
        mark += took;
        return Math.round(took);
      },
    };
  }

  const end = (run: Run, how: TurnEnd) => run.write((tx, turn) => endLockedTurn(parts, tx, turn, how));

  /** Answers calls that were not carried out. */
  function closeCalls(tx: Tx, turn: TurnRow, calls: readonly ToolCall[], text: string): void {
    for (const call of calls) addMessage(tx, turn, resultMessage(call, text));
  }

  function addMessage(tx: Tx, turn: TurnRow, message: Parameters<typeof sealMessage>[2]): void {
    const sealed = sealMessage(sealer, turn.account_id, message);
    insertMessage(tx, { agentSessionId: turn.agent_session_id, turnId: turn.id, sealed });
  }

  /** Waits while a person holds control or is to solve a bot check. */
  async function waitForPerson(turn: TurnRow, run: Run, reason: string): Promise<TurnRow | undefined> {
    if (turn.status !== "waiting_for_person") {
      const calls = (await run.conversation()).pending;
      // The memory is freed, because a person may take long.
      run.forget();
      return run.write(async (tx) => {
        closeCalls(tx, turn, calls, "not done, or not to its end: a person has taken over");
        const waiting = { status: "waiting_for_person", reason, waiting_since: new Date(parts.clock.now()) } as const;
        return updateTurn(tx, turn.id, waiting);
      });
    }
    await sleep(pollEvery, run.signal);
    run.takeTime();
    run.signal.throwIfAborted();
    return findTurn(db, turn.id);
  }

  /**
   * Resumes after a wait for a person. Answers a waiting `ask_person` with `note`, and closes other open calls as not
   * done.
   */
  async function goOn(turn: TurnRow, run: Run, epoch: string, note: string): Promise<TurnRow> {
    const calls = (await run.conversation()).pending;
    const page = await run.page.describe(run.caller());
    run.takeTime();
    return run.write(async (tx, locked) => {
      const text = turn.waits_until === null ? "not done, or not to its end: a person had taken over" : note;
      closeCalls(tx, turn, calls, text);
      addMessage(tx, turn, noteMessage(`${note} The page is now:\n${page}`));
      const waited = afterWait(locked, parts.clock.now());
      const changes = { status: "running" as const, reason: null, waits_until: null, control_epoch: epoch, ...waited };
      return updateTurn(tx, turn.id, changes);
    });
  }

  /** Waits for a person or resumes after the wait, if needed. Returns "go on" if the next step can run. */
  async function besidePerson(turn: TurnRow, run: Run, control: ControlRow): Promise<TurnRow | undefined | "go on"> {
    const { control_holder: holder, control_epoch: epoch } = control;
    if (holder !== null) return waitForPerson(turn, run, "takeover");
    if (control.status === "paused") return waitForPerson(turn, run, "challenge");
    if (turn.control_epoch !== null && turn.control_epoch !== epoch)
      return goOn(turn, run, epoch, "A person had control, and has handed it back.");
    if (turn.waits_until !== null) {
      if (parts.clock.now() >= turn.waits_until.getTime()) return goOn(turn, run, epoch, "No person has come in time.");
      return waitForPerson(turn, run, "person_needed");
    }
    if (turn.status === "waiting_for_person") return goOn(turn, run, epoch, "What a person was needed for is over.");
    return "go on";
  }

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
    const beside = await besidePerson(turn, run, control);
    if (beside !== "go on") return beside;
    const [call, ...rest] = conversation.pending;
    if (call?.name === "resume_recipe") return resumeRecipe(parts, run, call, rest);
    if (call) return doCall(parts, turn, run, conversation, call);
    const limit = limitReached(turn);
    const { recipe } = turn;
    // Of the limits, only the time applies to a recipe step, which uses no model steps or tokens.
    if (recipe && !recipe.isBroken && limit !== "seconds")
      return takeRecipeStep(parts, turn, run, control.control_epoch, recipe);
    if (limit !== undefined) return end(run, { status: "limit_reached", reason: limit });
    return askInTurn(parts, turn, run, conversation, { epoch: control.control_epoch, page, credential });
  }

  async function run(turnId: string, signal: AbortSignal, header?: string): Promise<void> {
    const over = new AbortController();
    const unsubscribe = bus.subscribe("turn-changed", (id) => {
      if (id !== turnId) return;
      const check = async () => {
        if ((await findTurn(db, turnId))?.ended_at !== null) over.abort(new TurnOver());
      };
      // If this check fails, the next step notices the end.
      check().catch(() => undefined);
    });
    try {
      const [found, agent] = (await rowsAhead.take(turnId)) ?? (await readRows(turnId));
      if (!found || !agent) return;
      let turn: TurnRow | undefined = found;
      const made = makeRun(turn, agent, AbortSignal.any([signal, over.signal]), header);
      while (turn && turn.ended_at === null) {
        made.signal.throwIfAborted();
        turn = await step(turn, made).catch((error: unknown) => {
          // The session has ended, which the next step notices.
          if (asFailure(error).slug !== "session-destroyed") throw error;
          return findTurn(db, turnId);
        });
      }
      await made.keep();
    } catch (error) {
      if (!(error instanceof TurnOver) && !over.signal.aborted) throw error;
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
        const caller = callerFor(turnId, principal, variables, new AbortController().signal);
        return createPage(parts.sessions, session_id).describe(caller());
      };
      pagesAhead.add(turnId, describe());
    },
  };
}

/** How a turn ends if its browser session has ended. */
export function endOfSession(reason: string | null | undefined): TurnEnd {
  const isOrderly = reason === "destroyed" || reason === null || reason === undefined;
  return { status: isOrderly ? "cancelled" : "failed", reason: isOrderly ? "session_ended" : reason };
}
