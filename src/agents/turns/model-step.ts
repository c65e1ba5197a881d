import { jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { type ModelFault, readModelFault } from "../llm/model-fault.ts";
import { type LlmCredential, type Models, maxResponseTokens } from "../llm/models.ts";
import type { LlmUsage } from "../llm/spending.ts";
import type { ToolDescriptions } from "../prompts/tools.ts";

export interface ModelRequest {
  readonly credential: LlmCredential;
  readonly model: string;
  readonly system: string;
  readonly messages: ModelMessage[];
  readonly tools: ToolDescriptions;
}

export type ModelAnswer =
  | {
      readonly messages: readonly ModelMessage[];
      readonly text: string;
      readonly usage: LlmUsage;
      /** The provider's identifier of the response. */
      readonly responseId: string;
    }
  /** `isCharged`: the provider had started to respond, and charges for that. */
  | { readonly fault: ModelFault; readonly isCharged: boolean };

/**
 * Options for providers. Anthropic caches the whole request for the next step; a cache marker within the messages would
 * change them from call to call. OpenAI must not store responses, so that requests contain no references to stored
 * items.
 */
const callOptions = { anthropic: { cacheControl: { type: "ephemeral" as const } }, openai: { store: false } };

/** Converts tool descriptions without `execute`: the turn runs the calls itself and records them. */
const toToolSet = (described: ToolDescriptions): ToolSet =>
  Object.fromEntries(
    Object.entries(described).map(([name, { description, input }]) => [
      name,
      // Cast: `input` is JSON Schema, but its type is `object`.
      tool({ description, inputSchema: jsonSchema(input as Parameters<typeof jsonSchema>[0]) }),
    ]),
  );

/** Sends a request to a model. Resolves with the complete response, or with a fault. Throws if the signal aborts. */
export async function sendModelRequest(
  models: Models,
  question: ModelRequest,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  const { credential, model, system, messages, tools } = question;
  let fault: unknown;
  let hasBegun = false;
  try {
    const stream = streamText({
      model: await models.of(credential, model),
      instructions: system,
      messages,
      tools: toToolSet(tools),
      maxOutputTokens: maxResponseTokens,
      maxRetries: 0,
      abortSignal: signal,
      providerOptions: callOptions,
      onError: ({ error }) => {
        fault ??= error;
      },
    });
    for await (const part of stream.stream) hasBegun ||= part.type === "text-delta" || part.type === "tool-input-start";
    signal.throwIfAborted();
    if (fault !== undefined) throw fault;
    const [response, said, usage, finish] = await Promise.all([
      ...([stream.response, stream.text, stream.usage, stream.finishReason] as const),
    ]);
    // A stream that ends without a finish event was truncated.
    if (finish === "other" || finish === "error") throw new Error("the response of the model was truncated");
    const input = usage.inputTokens ?? 0;
    const { cacheReadTokens: cached = 0, cacheWriteTokens: written = 0 } = usage.inputTokenDetails ?? {};
    // PostgreSQL stores neither NUL nor unpaired surrogates.
    const text = said.replaceAll("\0", "").toWellFormed();
    const used = { input, cached, written, output: usage.outputTokens ?? 0 };
    return { messages: response.messages, text, usage: used, responseId: response.id };
  } catch (thrown) {
    signal.throwIfAborted();
    return { fault: readModelFault(fault ?? thrown, credential.apiKey), isCharged: hasBegun };
  }
}
