import type { JsonObject } from "@bufbuild/protobuf";
import { jsonSchema, type ModelMessage, streamText, type ToolSet, tool } from "ai";
import { type ModelFault, readModelFault } from "../llm/model-fault.ts";
import { type LlmCredential, longestAnswer, type Models } from "../llm/models.ts";
import type { LlmUsage } from "../llm/spending.ts";
import { doneWith, recipeTools, rolePrompt, tools, variablesPrompt } from "./tools.ts";

/** What a model is asked. */
export interface Question {
  readonly credential: LlmCredential;
  readonly model: string;
  /** What the agent session was told for all its turns. */
  readonly instructions: string | null;
  /** Names of what it may type without knowing it. */
  readonly variables: readonly string[];
  readonly messages: ModelMessage[];
  /** What the result of the turn is to fit. */
  readonly outputSchema: JsonObject | null;
  /** Whether it may be asked to mend steps of a recipe. */
  readonly hasRecipe: boolean;
}

/** What came of asking it. */
export type ModelAnswer =
  | { readonly messages: readonly ModelMessage[]; readonly text: string; readonly usage: LlmUsage }
  /** `isCharged`: it had begun to answer, and its provider charges for that. */
  | { readonly fault: ModelFault; readonly isCharged: boolean };

/** Only its last step is new: the ones before are read from the provider's cache. */
const cachePoint = { anthropic: { cacheControl: { type: "ephemeral" as const } } };

/** Of OpenAI's: nothing is kept there, and so nothing is referred to. */
const callOptions = { openai: { store: false } };

/** None is carried out by the package that calls models: a turn does it, and remembers it. */
const toToolSet = (described: Readonly<Record<string, { description: string; input: object }>>): ToolSet =>
  Object.fromEntries(
    Object.entries(described).map(([name, { description, input }]) => [
      name,
      // The boundary at which an object of ours becomes JSON Schema.
      tool({ description, inputSchema: jsonSchema(input as Parameters<typeof jsonSchema>[0]) }),
    ]),
  );
const usualTools = toToolSet(tools);
const allTools = toToolSet({ ...tools, ...recipeTools });

function toolsOf({ hasRecipe, outputSchema }: Question): ToolSet {
  const known = hasRecipe ? allTools : usualTools;
  return outputSchema ? { ...known, ...toToolSet({ done: doneWith(outputSchema) }) } : known;
}

function withCachePoint(messages: ModelMessage[]): ModelMessage[] {
  const last = messages.at(-1);
  return last ? [...messages.slice(0, -1), { ...last, providerOptions: cachePoint }] : messages;
}

/** What the model is told for the whole session. */
function instructionsOf({ instructions, variables }: Question): string {
  const places = variables.map((name) => `{{${name}}}`).join(", ");
  const told = instructions === null ? [] : [`The person has told you:\n${instructions}`];
  return [rolePrompt, ...(variables.length > 0 ? [variablesPrompt(places)] : []), ...told].join("\n\n");
}

/** Asks a model once. */
export async function askModel(models: Models, question: Question, signal: AbortSignal): Promise<ModelAnswer> {
  const { credential, model, messages } = question;
  let fault: unknown;
  let hasBegun = false;
  try {
    const stream = streamText({
      model: await models.of(credential, model),
      instructions: instructionsOf(question),
      messages: withCachePoint(messages),
      ...{ tools: toolsOf(question), maxOutputTokens: longestAnswer, maxRetries: 0 },
      ...{ abortSignal: signal, providerOptions: callOptions },
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
    // A stream that ends before its last event was cut.
    if (finish === "other" || finish === "error") throw new Error("the answer broke off");
    const input = usage.inputTokens ?? 0;
    const { cacheReadTokens: cached = 0, cacheWriteTokens: written = 0 } = usage.inputTokenDetails ?? {};
    // PostgreSQL stores no NUL, and nobody needs one.
    const text = said.replaceAll("\0", "");
    return { messages: response.messages, text, usage: { input, cached, written, output: usage.outputTokens ?? 0 } };
  } catch (thrown) {
    signal.throwIfAborted();
    return { fault: readModelFault(fault ?? thrown, credential.apiKey), isCharged: hasBegun };
  }
}
