import { sleep } from "../../platform/bounded-wait.ts";
import { Failure, fail } from "../../platform/errors.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { inSpan, type SpanAttributes } from "../../platform/traces/spans.ts";
import { llmPriceOf } from "../llm/llm-prices.ts";
import type { ModelFault } from "../llm/model-fault.ts";
import { type LlmCredential, maxResponseTokens } from "../llm/models.ts";
import { credentialOf } from "../llm/payer.ts";
import { costOf, type Reservation, reserve, settleReservation } from "../llm/spending.ts";
import { recordKeyUse } from "../llm/store.ts";
import { tokensOf } from "./model-messages.ts";
import type { ModelAnswer, ModelRequest } from "./model-step.ts";
import { type TurnRow, updateTurn } from "./store.ts";
import { payerOf } from "./turn-columns.ts";
import type { TurnEnd } from "./turn-end.ts";
import type { Run, TurnParts } from "./turn-parts.ts";

/**
 * Milliseconds. While a provider is busy or unreachable, calls are retried for at most `total`. The pauses double from
 * `firstPause` to `longestPause`, or longer if the provider requests that.
 */
const retryMs = { total: 60_000, firstPause: 500, longestPause: 15_000 };

/** A response of the model, to be charged to the turn. */
export interface ModelResponse extends Extract<ModelAnswer, { readonly text: string }> {
  readonly reservation: Reservation | undefined;
  readonly durationMs: number;
}

/** Returns how a failed model call ends the turn. */
function endOf({ kind, message }: ModelFault): TurnEnd {
  if (kind === "wrong_key") {
    const detail = `the provider rejected the key (${message}): store or send another key`;
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
    {
      detail:
        "the LLM key of the turn was deleted or can no longer be decrypted: store a key, and send the message again",
    },
  ),
};

/**
 * Reads the credential that pays for a turn. Returns undefined if the turn has no payer, or if its key was deleted or
 * can no longer be decrypted.
 */
export async function readCredential(parts: TurnParts, turn: TurnRow, run: Run): Promise<LlmCredential | undefined> {
  const payer = payerOf(turn);
  return payer && credentialOf(parts.db, parts, payer, turn.account_id, run.header);
}

/**
 * Calls the model of a turn, and retries while the provider is busy or unreachable. If the call fails, returns how the
 * turn ends.
 */
export async function callModel(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  parameters: Pick<ModelRequest, "system" | "messages" | "tools">,
  read: Promise<LlmCredential | undefined> = readCredential(parts, turn, run),
): Promise<ModelResponse | { readonly end: TurnEnd }> {
  const credential = await read;
  if (!credential) return { end: withoutCredential };
  const question = { ...parameters, credential, model: turn.model };
  try {
    return await callWithRetries(parts, turn, run, question);
  } catch (error) {
    // The account has reached its monthly cap since the turn started.
    if (error instanceof Failure && error.slug === "bundled-llm-budget-exhausted")
      return { end: { status: "limit_reached", reason: "cost_cents", failure: error } };
    throw error;
  }
}

async function callWithRetries(
  parts: TurnParts,
  turn: TurnRow,
  run: Run,
  question: ModelRequest,
): Promise<ModelResponse | { readonly end: TurnEnd }> {
  const { config, models } = parts;
  // Loading the model libraries takes about 200 ms, which must not delay startup.
  const { sendModelRequest } = await import("./model-step.ts");
  const price = turn.credential === "bundled" ? config.bundledLlm?.price : undefined;
  // An upper bound of the cost is reserved before the call.
  const { system, tools, messages } = question;
  const input = price ? tokensOf([system, tools, messages]) : 0;
  const max = price && costOf({ input, cached: 0, written: input, output: maxResponseTokens }, price);
  const begunAt = performance.now();
  const deadline = begunAt + retryMs.total;
  for (let pause = retryMs.firstPause; ; pause = Math.min(2 * pause, retryMs.longestPause)) {
    const reservation = max === undefined ? undefined : await reserveCost(parts, run, max);
    const answer = await inSpan("chat", chatSpan(question), async (span) => {
      const answered = await sendModelRequest(models, question, run.signal);
      span?.set(describeAnswer(answered));
      return answered;
    });
    if (!("fault" in answer)) return { ...answer, reservation, durationMs: Math.round(performance.now() - begunAt) };
    // If a response had started, the reservation stays: the provider charges an amount that it does not report.
    if (reservation && !answer.isCharged)
      await run.write(async (tx, locked) => {
        await settleReservation(tx, reservation, 0);
        return addCost(tx, locked, -reservation.amount);
      });
    const { kind, retryAfter = 0 } = answer.fault;
    // Some providers request a wait of 0 s.
    const waitMs = Math.max(retryAfter, pause);
    const isPermanent = kind !== "busy" && kind !== "unreachable";
    if (isPermanent || performance.now() + waitMs > deadline) return { end: endOf(answer.fault) };
    await sleep(waitMs, run.signal);
    run.signal.throwIfAborted();
  }
}

const chatSpan = ({ credential: { provider } }: ModelRequest) =>
  ({ kind: "client", attributes: { "gen_ai.operation.name": "chat", "gen_ai.provider.name": provider } }) as const;

/**
 * Returns the span attributes of an answer: its token counts and the provider's identifier of the response, or else the
 * kind of the fault.
 */
function describeAnswer(answer: ModelAnswer): SpanAttributes {
  if ("fault" in answer) return { "error.type": answer.fault.kind };
  const { input, output } = answer.usage;
  const id = /^[\w-]{1,64}$/.exec(answer.responseId)?.[0];
  return {
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": output,
    ...(id !== undefined && { "gen_ai.response.id": id }),
  };
}

/** Reserves the maximum cost of a bundled LLM call. If the call is never settled, the turn is charged that amount. */
async function reserveCost({ clock }: TurnParts, run: Run, amount: number): Promise<Reservation> {
  const { promise, resolve } = Promise.withResolvers<Reservation>();
  await run.write(async (tx, turn) => {
    resolve(await reserve(tx, clock, turn.account_id, amount));
    return addCost(tx, turn, amount);
  });
  return promise;
}

const addCost = (tx: Tx, { id, cost }: TurnRow, amount: number): Promise<TurnRow> =>
  updateTurn(tx, id, { cost: String(Number(cost) + amount) });

/** Charges a response to its turn, and adds `steps` to the turn's step count. */
export async function charge(
  { config, clock }: TurnParts,
  tx: Tx,
  turn: TurnRow,
  run: Run,
  { usage, reservation, durationMs }: ModelResponse,
  steps: number,
): Promise<TurnRow> {
  const payer = payerOf(turn);
  const price = payer && llmPriceOf(payer, config.bundledLlm, usage.input);
  const cost = price && costOf(usage, price);
  const { amount: reserved } = reservation ?? { amount: 0 };
  if (reservation && cost !== undefined) await settleReservation(tx, reservation, cost);
  if (turn.credential === "byok") recordKeyUse(tx, turn.account_id, new Date(clock.now()));
  return updateTurn(tx, turn.id, {
    steps: turn.steps + steps,
    tokens: String(Number(turn.tokens) + usage.input + usage.output),
    cost: turn.cost === null || cost === undefined ? null : String(Number(turn.cost) + cost - reserved),
    worked_ms: String(Number(turn.worked_ms) + run.takeElapsedMs()),
    model_ms: String(Number(turn.model_ms) + durationMs),
  });
}
