import { create } from "@bufbuild/protobuf";
import { addEntry } from "../../events/transcript.ts";
import { AgentSessionTurnStartedEventSchema, TranscriptRole } from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import { sleep } from "../../platform/bounded-wait.ts";
import { Failure, fail } from "../../platform/errors.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { llmPriceOf } from "../llm/llm-prices.ts";
import type { ModelFault } from "../llm/model-fault.ts";
import { longestAnswer } from "../llm/models.ts";
import { credentialOf } from "../llm/payer.ts";
import { costOf, type Reservation, reserve, settleReservation } from "../llm/spending.ts";
import { noteUse } from "../llm/store.ts";
import { pendingToolCalls, sealMessage, tokensOf, toPrompt, withOwnIds } from "./model-messages.ts";
import type { ModelAnswer, ModelRequest } from "./model-step.ts";
import {
  hasWaitingMessages,
  insertMessage,
  readAgent,
  type TurnRow,
  takeWaitingMessages,
  updateTurn,
} from "./store.ts";
import { recipeTools, rolePrompt, tools } from "./tools.ts";
import { payerOf } from "./turn-columns.ts";
import { endLockedTurn, endOfAnswer, entryOf, ownerOf, type TurnEnd } from "./turn-end.ts";
import { noteMisfit } from "./turn-output.ts";
import type { Run, TurnParts } from "./turn-parts.ts";

/** Milliseconds to retry while a provider is busy or unreachable: in total, first pause, longest pause. */
const patience = { whole: 60_000, first: 500, longest: 15_000 };

/** How a failed model call ends the turn. */
function endOf({ kind, message }: ModelFault): TurnEnd {
  if (kind === "wrong_key") {
    const detail = `the provider refuses the key: ${message}; store or send another`;
    return { status: "failed", reason: "byok-llm-required", failure: fail("byok-llm-required", {}, { detail }) };
  }
  const isRefused = kind === "refused" || kind === "model_refused";
  const reason = isRefused ? "provider_refused" : "provider_unavailable";
  return { status: "failed", reason, modelFault: message };
}

const withoutCredential: TurnEnd = {
  status: "failed",
  reason: "byok-llm-required",
  failure: fail(
    "byok-llm-required",
    {},
    { detail: "the LLM key of the turn was deleted: store another, and send the message again" },
  ),
};

/** Asks the model for the next step and commits its response. */
export async function askInTurn(parts: TurnParts, turn: TurnRow, run: Run, epoch: string): Promise<TurnRow> {
  const payer = payerOf(turn);
  const credential = payer && (await credentialOf(parts.db, parts, payer, turn.account_id, run.header));
  if (!credential) return run.write((tx, locked) => endLockedTurn(parts, tx, locked, withoutCredential));
  await begin(parts, run, epoch);
  const messages = toPrompt(await run.messages());
  const agent = await readAgent(parts.db, turn.agent_session_id);
  const { instructions, variable_names: variables } = agent;
  const { output_schema: outputSchema } = turn;
  const question = {
    credential,
    model: turn.model,
    instructions,
    variables,
    messages,
    outputSchema,
    hasRecipe: agent.recipe_id !== null,
  };
  const asked = await askPatiently(parts, turn, run, question).catch((error: unknown) => {
    // Another turn has used up the budget meanwhile.
    if (error instanceof Failure && error.slug === "bundled-llm-budget-exhausted") return { over: error };
    throw error;
  });
  if ("over" in asked) {
    const end: TurnEnd = { status: "limit_reached", reason: "cost_cents", failure: asked.over };
    return run.write((tx, locked) => endLockedTurn(parts, tx, locked, end));
  }
  return commit(parts, run, asked);
}

/** Adds waiting messages to the conversation, and marks the turn as running. */
async function begin(parts: TurnParts, run: Run, epoch: string): Promise<void> {
  await run.write(async (tx, turn) => {
    await takeWaitingMessages(tx, turn.agent_session_id);
    return startTurn(parts, tx, turn, epoch);
  });
}

/** Marks a turn as running, and emits its started event if this is its first step. */
export async function startTurn({ events }: TurnParts, tx: Tx, turn: TurnRow, epoch: string): Promise<TurnRow> {
  if (turn.status === "queued") {
    const data = { agentSessionId: turn.agent_session_id, turnId: turn.id };
    const event = create(AgentSessionTurnStartedEventSchema, data);
    const owner = { accountId: turn.account_id, subject: turn.session_id };
    await events.append(tx, owner, AgentSessionTurnStartedEventSchema, event);
  }
  return updateTurn(tx, turn.id, { status: "running", reason: null, control_epoch: turn.control_epoch ?? epoch });
}

interface Asked {
  readonly answer: ModelAnswer;
  readonly reservation: Reservation | undefined;
}

/** Calls the model, retrying while the provider is busy or unreachable. */
async function askPatiently(parts: TurnParts, turn: TurnRow, run: Run, question: ModelRequest): Promise<Asked> {
  const { config, models } = parts;
  // Loading the model libraries takes about 200 ms, which must not delay startup.
  const { askModel } = await import("./model-step.ts");
  const price = turn.credential === "bundled" ? config.bundledLlm?.price : undefined;
  // An upper bound of the cost is reserved before the call.
  const input = tokensOf([rolePrompt, question.instructions, tools, recipeTools, question.messages]);
  const max = price && costOf({ input, cached: 0, written: input, output: longestAnswer }, price);
  const gaveUpAt = performance.now() + patience.whole;
  for (let pause = patience.first; ; pause = Math.min(2 * pause, patience.longest)) {
    const reservation = max === undefined ? undefined : await putAside(parts, run, max);
    const answer = await askModel(models, question, run.signal);
    if (!("fault" in answer))
      return { answer: { ...answer, messages: withOwnIds(answer.messages, question.messages) }, reservation };
    // For a response that had started, the reservation stays: the provider charges an amount that it does not report.
    if (reservation && !answer.isCharged)
      await run.write(async (tx, locked) => {
        await settleReservation(tx, reservation, 0);
        return addCost(tx, locked, -reservation.amount);
      });
    const { kind, retryAfter = pause } = answer.fault;
    const isHopeless = kind !== "busy" && kind !== "unreachable";
    if (isHopeless || performance.now() + retryAfter > gaveUpAt) return { answer, reservation: undefined };
    await sleep(retryAfter, run.signal);
    run.signal.throwIfAborted();
  }
}

/** Reserves the maximum cost of a bundled LLM call. If the call is never settled, the turn is charged that amount. */
async function putAside({ clock }: TurnParts, run: Run, amount: number): Promise<Reservation> {
  const { promise, resolve } = Promise.withResolvers<Reservation>();
  await run.write(async (tx, turn) => {
    resolve(await reserve(tx, clock, turn.account_id, amount));
    return addCost(tx, turn, amount);
  });
  return promise;
}

const addCost = (tx: Tx, { id, cost }: TurnRow, amount: number): Promise<TurnRow> =>
  updateTurn(tx, id, { cost: String(Number(cost) + amount) });

/** Commits a model response. Its tool calls start only after the commit. */
async function commit(parts: TurnParts, run: Run, { answer, reservation }: Asked): Promise<TurnRow> {
  const { clock, config, sealer, events, ids } = parts;
  if ("fault" in answer) return run.write((tx, turn) => endLockedTurn(parts, tx, turn, endOf(answer.fault)));
  const { usage, messages, text } = answer;
  const now = new Date(clock.now());
  return run.write(async (tx, turn) => {
    const payer = payerOf(turn);
    const price = payer && llmPriceOf(payer, config.bundledLlm, usage.input);
    const cost = price && costOf(usage, price);
    const { amount: aside } = reservation ?? { amount: 0 };
    if (reservation && cost !== undefined) await settleReservation(tx, reservation, cost);
    if (turn.credential === "byok") noteUse(tx, turn.account_id, now);
    for (const message of messages) {
      const sealed = sealMessage(sealer, turn.account_id, message);
      await insertMessage(tx, { agentSessionId: turn.agent_session_id, turnId: turn.id, sealed });
    }
    const changed = await updateTurn(tx, turn.id, {
      steps: turn.steps + 1,
      tokens: String(Number(turn.tokens) + usage.input + usage.output),
      cost: turn.cost === null || cost === undefined ? null : String(Number(turn.cost) + cost - aside),
      worked_ms: String(Number(turn.worked_ms) + run.takeTime()),
    });
    const isAnswer = pendingToolCalls(messages).length === 0 && !messages.some(({ role }) => role === "tool");
    const isLast = isAnswer && !(await hasWaitingMessages(tx, turn.agent_session_id));
    if (isLast && !changed.output_schema) return endLockedTurn(parts, tx, changed, endOfAnswer(changed, text));
    if (text !== "") {
      const content = { case: "text" as const, value: { text } };
      const entry = { id: ids.next("evt"), ...entryOf(changed), role: TranscriptRole.AGENT, content };
      await addEntry(tx, events, ownerOf(turn), entry, now);
    }
    if (!isLast) return changed;
    const content = "[The service tells you] Not ended: call done with the requested result.";
    const sealed = sealMessage(sealer, turn.account_id, { role: "user", content });
    await insertMessage(tx, { agentSessionId: turn.agent_session_id, turnId: turn.id, sealed });
    return noteMisfit(parts, tx, changed, "it called no tool");
  });
}
