import { create } from "@bufbuild/protobuf";
import { addEntry } from "../../events/transcript.ts";
import { AgentSessionTurnStartedEventSchema, TranscriptRole } from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { promptVersion, systemPrompt } from "../prompts/system-prompt.ts";
import { toolsFor } from "../prompts/tools.ts";
import { callModel, charge, type ModelResponse, readCredential } from "./model-call.ts";
import type { ModelConversation } from "./model-conversation.ts";
import { addMessage, hasOpenCalls, noteMessage, withPicturesApart } from "./model-messages.ts";
import { hasWaitingMessages, type TurnRow, takeWaitingMessages, updateTurn } from "./store.ts";
import { summarizeOldPart } from "./summary.ts";
import { endLockedTurn, endOfAnswer, entryOf, ownerOf } from "./turn-end.ts";
import { noteMisfit } from "./turn-output.ts";
import type { Run, TurnParts } from "./turn-parts.ts";

/** Data for a step. The promises may still be pending. */
interface StepInputs {
  readonly epoch: string;
  /** Description of the page, if the step needs it. */
  readonly page: Promise<string> | undefined;
  /** The credential, if its row is already being read. */
  readonly credential?: ReturnType<typeof readCredential> | undefined;
}

/** Asks the model for the next step and commits its response. */
export async function runModelStep(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  conversation: ModelConversation,
  inputs: StepInputs,
): Promise<TurnRow> {
  const credential = inputs.credential ?? readCredential(parts, turn, run);
  credential.catch(() => undefined);
  const page = await inputs.page;
  const isBegun = isStarted(turn) && conversation.waiting.length === 0;
  const begun = isBegun ? undefined : begin(parts, turn, run, conversation, { ...inputs, page });
  // The model is called while the start is committed. If the commit fails, the call is aborted.
  const failed = new AbortController();
  begun?.catch((error: unknown) => failed.abort(error));
  const old = conversation.oldPart();
  if (old) {
    const summarized = await summarizeOldPart(parts, (await begun) ?? turn, run, conversation, old);
    if (summarized.ended_at !== null) return summarized;
  }
  const messages = conversation.request();
  const request = {
    system: systemPrompt(run.agent.instructions, run.agent.variable_names),
    messages: turn.provider === "openai_compatible" ? withPicturesApart(messages) : messages,
    tools: toolsFor({
      outputSchema: turn.ordered_schema ?? turn.output_schema,
      hasRecipe: run.agent.recipe_id !== null,
      vision: turn.vision,
    }),
  };
  const signal = AbortSignal.any([run.signal, failed.signal]);
  const response = await callModel(parts, turn, { ...run, signal }, request, credential);
  await begun;
  if ("end" in response) return run.write((tx, locked) => endLockedTurn(parts, tx, locked, response.end));
  return commit(parts, run, { ...response, messages: conversation.withOwnIds(response.messages) });
}

/**
 * Appends the waiting messages and, before the first step, the open page, and marks the turn as running. `conversation`
 * changes at once; the promise resolves when the changes are committed.
 */
function begin(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  conversation: ModelConversation,
  { epoch, page }: { readonly epoch: string; readonly page: string | undefined },
): Promise<TurnRow> {
  const last = conversation.waiting.at(-1);
  const note = page === undefined ? undefined : `The page is now:\n${page}`;
  conversation.takeWaiting(note === undefined ? [] : [noteMessage(note)]);
  return run.write(async (tx, locked) => {
    if (last) takeWaitingMessages(tx, turn.agent_session_id, last.id);
    if (note !== undefined) addMessage(parts, tx, turn, noteMessage(note));
    return startTurn(parts, tx, locked, epoch, { prompt_version: locked.prompt_version ?? promptVersion });
  });
}

/** Whether the step starts with the open page. The message about a failed recipe step already contains the page. */
export const needsPage = (turn: TurnRow): boolean => turn.status === "queued" && turn.recipe === null;

const isStarted = (turn: TurnRow): boolean =>
  turn.status === "running" && turn.reason === null && turn.control_epoch !== null && turn.prompt_version !== null;

/** Marks a turn as running, and emits its started event if this is its first step. */
export async function startTurn(
  { events }: TurnParts,
  tx: Tx,
  turn: TurnRow,
  epoch: string,
  more: { readonly prompt_version?: number } = {},
): Promise<TurnRow> {
  if (turn.status === "queued") {
    const data = { agentSessionId: turn.agent_session_id, turnId: turn.id };
    const event = create(AgentSessionTurnStartedEventSchema, data);
    const owner = { accountId: turn.account_id, subject: turn.session_id };
    await events.append(tx, owner, AgentSessionTurnStartedEventSchema, event);
  }
  const changes = { status: "running" as const, reason: null, control_epoch: turn.control_epoch ?? epoch };
  return updateTurn(tx, turn.id, { ...changes, ...more });
}

/** Commits a model response. Its tool calls start only after the commit. */
async function commit(parts: TurnParts, run: Run, response: ModelResponse): Promise<TurnRow> {
  const { clock, events, ids } = parts;
  const { messages, text } = response;
  return run.write(async (tx, turn) => {
    for (const message of messages) addMessage(parts, tx, turn, message);
    const changed = await charge(parts, tx, turn, run, response, 1);
    const isAnswer = !hasOpenCalls(messages) && !messages.some(({ role }) => role === "tool");
    const isLast = isAnswer && !(await hasWaitingMessages(tx, turn.agent_session_id));
    if (isLast && !changed.output_schema) return endLockedTurn(parts, tx, changed, endOfAnswer(changed, text));
    if (text !== "") {
      const content = { case: "text" as const, value: { text } };
      const entry = { id: ids.next("evt"), ...entryOf(changed), role: TranscriptRole.AGENT, content };
      await addEntry(tx, events, ownerOf(turn), entry, new Date(clock.now()));
    }
    if (!isLast) return changed;
    addMessage(parts, tx, turn, noteMessage("Not ended: call done with the requested result."));
    return noteMisfit(parts, tx, changed, "it called no tool");
  });
}
