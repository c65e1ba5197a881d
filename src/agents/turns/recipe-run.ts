import { create } from "@bufbuild/protobuf";
import { addEntry } from "../../events/transcript.ts";
import { TranscriptRole } from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import { FileSource } from "../../gen/pilothouse/v1/file_pb.ts";
import type { RecipeStep } from "../../gen/pilothouse/v1/recipe_pb.ts";
import {
  CaptureRequestSchema,
  InteractRequestSchema,
  NavigateRequestSchema,
  WaitRequestSchema,
} from "../../gen/pilothouse/v1/session_pb.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import { asFailure, Failure, restoreFailure } from "../../platform/errors.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { toProblem } from "../../platform/problem.ts";
import { collectCapture } from "../../sessions/commands/capture-file.ts";
import type { SessionCaller } from "../../sessions/commands/session-caller.ts";
import type { Sessions } from "../../sessions/sessions.ts";
import { addMessage, noteMessage, type ToolCall } from "./model-messages.ts";
import { completionNote, displayedArguments, openPlan, type RecipePlan, repairNote } from "./recipe-plan.ts";
import { beginAction, hasWaitingMessages, readAgent, type TurnRow, updateTurn } from "./store.ts";
import type { RecipeProgress } from "./tables.ts";
import { addToolResult, describePageOrFailure, readFailure } from "./tool-call.ts";
import { choosePayerColumns } from "./turn-columns.ts";
import { endLockedTurn, entryOf, ownerOf } from "./turn-end.ts";
import type { Run, TurnParts } from "./turn-parts.ts";
import { startTurn } from "./turn-question.ts";

/** Milliseconds before a refused step is retried. By then, the row shows the control holder or the pause. */
const retryAfter = 200;

const progressOf = (progress: RecipeProgress) => ({ recipe: JSON.stringify(progress) });

async function executeStep(
  sessions: Sessions,
  id: string,
  caller: SessionCaller,
  { do: what }: RecipeStep,
): Promise<void> {
  if (what.case === undefined) return;
  if (what.case === "capture") {
    const { captureKind: kind, fileName: name, fullPage } = what.value;
    const request = create(CaptureRequestSchema, { id, kind, fullPage });
    const { data } = await collectCapture(sessions.captureStream(caller, request));
    const announcedBytes = BigInt(data.length);
    await sessions.files.put(caller, id, { name, announcedBytes, data: partsOf(data), source: FileSource.CAPTURE });
    return;
  }
  const { $typeName: _typeName, $unknown: _unknown, ...fields } = what.value;
  const request = { ...fields, id };
  if (what.case === "navigate") await sessions.navigate(caller, create(NavigateRequestSchema, request));
  if (what.case === "interact") await sessions.interact(caller, create(InteractRequestSchema, request));
  if (what.case === "wait") await sessions.wait(caller, create(WaitRequestSchema, request));
}

async function* partsOf(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield data;
}

/**
 * Runs a step, and repeats the call once if the worker was lost. The step identifier ensures that the step runs only
 * once.
 */
function executeOnce(sessions: Sessions, id: string, caller: SessionCaller, step: RecipeStep): Promise<void> {
  return executeStep(sessions, id, caller, step).catch((error: unknown) => {
    if (asFailure(error).extensions.worker_lost !== true) throw error;
    return executeStep(sessions, id, caller, step);
  });
}

/** Whether a step was refused before it reached the page, because a person holds control or the session is paused. */
function isRefused({ slug, extensions }: Failure): boolean {
  if (slug !== "conflict" || extensions.in_doubt === true) return false;
  return "holder_client_id" in extensions || "pause_reason" in extensions;
}

/** Runs the next step of a turn's recipe and commits its result. */
export async function runRecipeStep(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  epoch: string,
  progress: RecipeProgress,
): Promise<TurnRow> {
  const { sessions, ids, events, clock, config } = parts;
  const plan = openPlan(parts.sealer, turn);
  const step = plan.steps[progress.step];
  if (!step) return run.write((tx, locked) => finishRecipe(parts, tx, locked, plan));
  let stepId = "";
  await run.write(async (tx, locked) => {
    // If another gateway resumes the step, the identifier is the same, so that the session does not run the step twice.
    stepId = await beginAction(tx, turn.id, `recipe:${progress.step}:${progress.attempt}`, ids.next("evt"));
    return startTurn(parts, tx, locked, epoch);
  });
  const begunAt = performance.now();
  const begun = executeOnce(sessions, turn.session_id, run.caller(stepId), step);
  const failure = await begun.then(() => undefined, readFailure(run));
  const durationMs = Math.round(performance.now() - begunAt);
  const workedBy = ({ worked_ms: before }: TurnRow) => ({ worked_ms: String(Number(before) + run.takeElapsedMs()) });
  if (failure && isRefused(failure)) {
    await sleep(retryAfter, run.signal);
    run.signal.throwIfAborted();
    const again = progressOf({ ...progress, attempt: progress.attempt + 1 });
    return run.write((tx, locked) => updateTurn(tx, turn.id, { ...workedBy(locked), ...again }));
  }
  const note =
    failure && repairNote(plan, progress.step, `${failure.slug}: ${failure.message}`, await describePageOrFailure(run));
  return run.write(async (tx, locked) => {
    const error = failure && toProblem(failure, config.errorsBase, turn.id);
    const screenshotPath = `/v1/agent-sessions/${turn.agent_session_id}/steps/${stepId}/screenshot`;
    const value = {
      name: step.do.case ?? "",
      arguments: displayedArguments(step),
      durationMs,
      ...(error && { error }),
      // The worker takes screenshots only before navigations and interactions.
      ...((step.do.case === "navigate" || step.do.case === "interact") && { screenshotPath }),
    };
    const entry = { id: stepId, ...entryOf(locked), role: TranscriptRole.SYSTEM };
    const content = { case: "action" as const, value };
    await addEntry(tx, events, ownerOf(turn), { ...entry, content }, new Date(clock.now()));
    const worked = workedBy(locked);
    if (!failure || note === undefined)
      return updateTurn(tx, turn.id, { ...worked, ...progressOf({ ...progress, step: progress.step + 1 }) });
    return requestRepair(parts, tx, await updateTurn(tx, turn.id, worked), { failure, note, progress, plan });
  });
}

/** A failed step, and the message for the model. */
interface FailedStep {
  readonly failure: Failure;
  readonly note: string;
  readonly progress: RecipeProgress;
  readonly plan: RecipePlan;
}

/** Adds the message that asks the model to repair a step. Ends the turn if no credential can pay for a model. */
async function requestRepair(parts: TurnParts, tx: Tx, turn: TurnRow, broken: FailedStep): Promise<TurnRow> {
  const { failure, note, progress, plan } = broken;
  const payer = turn.credential === "none" ? await findPayer(parts, tx, turn) : undefined;
  if (payer instanceof Failure) {
    const place = `step ${progress.step + plan.first} of the recipe: ${failure.message}`;
    const detail = `${place}; no model can repair it: ${payer.message}`;
    const restored = restoreFailure(failure.slug, failure.extensions, { detail });
    return endLockedTurn(parts, tx, turn, { status: "failed", reason: "recipe_step_failed", failure: restored });
  }
  addMessage(parts, tx, turn, noteMessage(note));
  return updateTurn(tx, turn.id, { ...progressOf({ ...progress, isBroken: true }), ...payer });
}

/** Chooses the payer for a turn that now needs a model. Returns the failure if there is no payer. */
async function findPayer(parts: TurnParts, tx: Tx, { account_id: accountId, agent_session_id: id }: TurnRow) {
  const agent = await readAgent(tx, id);
  return choosePayerColumns(tx, parts, agent, { accountId, header: undefined }).catch((error: unknown) => {
    if (error instanceof Failure) return error;
    throw error;
  });
}

/** Ends the turn after the last step, unless messages wait for the model to answer. */
async function finishRecipe(parts: TurnParts, tx: Tx, turn: TurnRow, plan: RecipePlan): Promise<TurnRow> {
  addMessage(parts, tx, turn, noteMessage(completionNote(plan)));
  const through = await updateTurn(tx, turn.id, { recipe: null });
  if (await hasWaitingMessages(tx, turn.agent_session_id)) return through;
  return endLockedTurn(parts, tx, through, { status: "done" });
}

/** Handles `resume_recipe`. If the recipe resumes, later calls of the same response are reported as not done. */
export function resumeRecipe(parts: TurnParts, run: Run, call: ToolCall, rest: readonly ToolCall[]): Promise<TurnRow> {
  const next: unknown = Reflect.get(Object(call.input), "next_step");
  return run.write(async (tx, turn) => {
    const { recipe } = turn;
    if (!recipe?.isBroken) return addToolResult(parts, tx, turn, call, "failed: no recipe waits for you");
    const { first, steps } = openPlan(parts.sealer, turn);
    const step = Number(next) - first;
    if (!Number.isInteger(step) || step < 0 || step > steps.length) {
      const range = `${first} to ${first + steps.length}, which ends the recipe`;
      return addToolResult(parts, tx, turn, call, `failed: next_step must be a whole number from ${range}`);
    }
    await addToolResult(
      parts,
      tx,
      turn,
      call,
      "the recipe continues; you are called again if a step fails or the person sends a message",
    );
    for (const other of rest) await addToolResult(parts, tx, turn, other, "not done: the recipe continues");
    return updateTurn(tx, turn.id, progressOf({ step, attempt: recipe.attempt + 1, isBroken: false }));
  });
}
