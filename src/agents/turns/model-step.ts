import type { JsonObject } from "@bufbuild/protobuf";
import { jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { type ModelFault, readModelFault } from "../llm/model-fault.ts";
import { type LlmCredential, longestAnswer, type Models } from "../llm/models.ts";
import type { LlmUsage } from "../llm/spending.ts";
import { doneWith, recipeTools, rolePrompt, tools, variablesPrompt } from "./tools.ts";

export interface ModelRequest {
  readonly credential: LlmCredential;
  readonly model: string;
  /** Instructions for all turns of the agent session. */
  readonly instructions: string | null;
  /** Names of secrets that the model may type without seeing them. */
  readonly variables: readonly string[];
  readonly messages: ModelMessage[];
  /** JSON Schema for the result of the turn. */
  readonly outputSchema: JsonObject | null;
  /** Whether the model may be asked to repair recipe steps. */
  readonly hasRecipe: boolean;
}

export type ModelAnswer =
  | { readonly messages: readonly ModelMessage[]; readonly text: string; readonly usage: LlmUsage }
  /** `isCharged`: the provider had started to respond, and charges for that. */
  | { readonly fault: ModelFault; readonly isCharged: boolean };

/** Marks the last message, so that the provider caches everything before the next step. */
const cachePoint = { anthropic: { cacheControl: { type: "ephemeral" as const } } };

/** Disables storage at OpenAI, and so references to stored items. */
const callOptions = { openai: { store: false } };

/** Converts tool descriptions without `execute`: the turn runs the calls itself and records them. */
const toToolSet = (described: Readonly<Record<string, { description: string; input: object }>>): ToolSet =>
  Object.fromEntries(
    Object.entries(described).map(([name, { description, input }]) => [
      name,
      // Cast: `input` is JSON Schema, but its type is `object`.
      tool({ description, inputSchema: jsonSchema(input as Parameters<typeof jsonSchema>[0]) }),
    ]),
  );
const usualTools = toToolSet(tools);
const allTools = toToolSet({ ...tools, ...recipeTools });

function toolsOf({ hasRecipe, outputSchema }: ModelRequest): ToolSet {
  const known = hasRecipe ? allTools : usualTools;
  return outputSchema ? { ...known, ...toToolSet({ done: doneWith(outputSchema) }) } : known;
}

function withCachePoint(messages: ModelMessage[]): ModelMessage[] {
  const last = messages.at(-1);
  return last ? [...messages.slice(0, -1), { ...last, providerOptions: cachePoint }] : messages;
}

/** System prompt of the agent session. */
function instructionsOf({ instructions, variables }: ModelRequest): string {
  const places = variables.map((name) => `{{${name}}}`).join(", ");
  const instructionLines = instructions === null ? [] : [`The person has told you:\n${instructions}`];
  return [rolePrompt, ...(variables.length > 0 ? [variablesPrompt(places)] : []), ...instructionLines].join("\n\n");
}

export async function askModel(models: Models, question: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
  const { credential, model, messages } = question;
  let fault: unknown;
  let hasBegun = false;
  try {
    const stream = streamText({
      model: await models.of(credential, model),
      instructions: instructionsOf(question),
      messages: withCachePoint(messages),
      tools: toolsOf(question),
      maxOutputTokens: longestAnswer,
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
    // PostgreSQL cannot store NUL.
    const text = said.replaceAll("\0", "");
    return { messages: response.messages, text, usage: { input, cached, written, output: usage.outputTokens ?? 0 } };
  } catch (thrown) {
    signal.throwIfAborted();
    return { fault: readModelFault(fault ?? thrown, credential.apiKey), isCharged: hasBegun };
  }
}
