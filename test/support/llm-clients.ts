import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import type { Dialect } from "./llm-wire/dialect.ts";

/** Output of a model as a client reads it. */
export interface Received {
  readonly text: string;
  readonly calls: readonly { readonly id?: string | undefined; readonly name: string; readonly input: unknown }[];
  readonly usage: { readonly input: number; readonly output: number; readonly cached: number };
}

/** Options of a request. */
export interface Manner {
  readonly stream?: boolean;
  readonly key?: string;
  readonly model?: string;
  /** Milliseconds until the client times out. */
  readonly timeout?: number;
  /** Additional fields of a request. */
  readonly more?: object;
}

/** Part of a conversation. */
export type Said =
  | { readonly user: string; readonly picture?: string }
  | { readonly answer: Received }
  /** Results of all calls of an answer, in one message if the protocol supports it. */
  | { readonly results: readonly { readonly of: string; readonly name: string; readonly text: string }[] };

/** Official client of a provider, with conversations in the provider's format. */
export interface LlmClient {
  readonly name: Dialect["name"];
  ask(conversation: readonly Said[], manner?: Manner): Promise<Received>;
}

const properties = { city: { type: "string" } };
const tool = { name: "weather", description: "Tells the weather.", schema: { type: "object" as const, properties } };
const jpeg = "image/jpeg" as const;

/** Creates the clients of all providers for an address, without retries. */
export const createLlmClients = (origin: string): LlmClient[] => [
  anthropicClient(origin),
  openaiClient(origin),
  chatClient(origin),
  googleClient(origin),
];

function anthropicClient(baseURL: string): LlmClient {
  const toMessage = (said: Said): Anthropic.MessageParam => {
    if ("answer" in said) {
      const { text, calls } = said.answer;
      const uses = calls.map(({ id = "", name, input }) => ({ type: "tool_use" as const, id, name, input }));
      return { role: "assistant", content: [...(text === "" ? [] : [{ type: "text" as const, text }]), ...uses] };
    }
    if ("results" in said) {
      const toBlock = ({ of, text }: (typeof said.results)[number]) => {
        return { type: "tool_result" as const, tool_use_id: of, content: text };
      };
      return { role: "user", content: said.results.map(toBlock) };
    }
    const source =
      said.picture === undefined ? [] : [{ type: "base64" as const, media_type: jpeg, data: said.picture }];
    const pictures = source.map((each) => ({ type: "image" as const, source: each }));
    return { role: "user", content: [{ type: "text", text: said.user }, ...pictures] };
  };
  return {
    name: "anthropic",
    async ask(conversation, { stream, key = "good-key", model = "claude-test", timeout = 10_000, more = {} } = {}) {
      const client = new Anthropic({ baseURL, apiKey: key, maxRetries: 0, timeout });
      const tools = [{ name: tool.name, description: tool.description, input_schema: tool.schema }];
      const request = { model, max_tokens: 100, messages: conversation.map(toMessage), tools, ...more };
      const asked = stream ? client.messages.stream(request).finalMessage() : client.messages.create(request);
      const { content, usage } = await asked;
      const { input_tokens: input, output_tokens: output, cache_read_input_tokens: cached } = usage;
      return {
        text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
        calls: content.flatMap((block) => (block.type === "tool_use" ? block : [])),
        usage: { input: input + (cached ?? 0), output, cached: cached ?? 0 },
      };
    },
  };
}

function openaiClient(origin: string): LlmClient {
  type Item = OpenAI.Responses.ResponseInputItem;
  const toItems = (said: Said): Item[] => {
    if ("answer" in said) {
      const { text, calls } = said.answer;
      const made = calls.map(({ id = "", name, input }): Item => {
        return { type: "function_call", call_id: id, name, arguments: JSON.stringify(input) };
      });
      return [...(text === "" ? [] : [{ role: "assistant" as const, content: text }]), ...made];
    }
    if ("results" in said)
      return said.results.map(({ of, text }) => ({ type: "function_call_output", call_id: of, output: text }));
    const { picture } = said;
    const url = `data:${jpeg};base64,${picture}`;
    const image = { type: "input_image" as const, detail: "auto" as const, image_url: url };
    const content = [{ type: "input_text" as const, text: said.user }, ...(picture === undefined ? [] : [image])];
    return [{ role: "user", content }];
  };
  return {
    name: "openai",
    async ask(conversation, { stream, key = "good-key", model = "gpt-test", timeout = 10_000, more = {} } = {}) {
      const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0, timeout });
      const { name, description, schema } = tool;
      const tools = [{ type: "function" as const, name, description, parameters: schema, strict: false }];
      const request = { model, input: conversation.flatMap(toItems), tools, ...more };
      const asked = stream ? client.responses.stream(request).finalResponse() : client.responses.create(request);
      const { output, output_text: text, usage } = await asked;
      return {
        text,
        calls: output.flatMap((item) =>
          item.type === "function_call" ? { id: item.call_id, name: item.name, input: JSON.parse(item.arguments) } : [],
        ),
        usage: {
          input: usage?.input_tokens ?? 0,
          output: usage?.output_tokens ?? 0,
          cached: usage?.input_tokens_details.cached_tokens ?? 0,
        },
      };
    },
  };
}

function chatClient(origin: string): LlmClient {
  const toMessages = (said: Said): OpenAI.ChatCompletionMessageParam[] => {
    if ("answer" in said) {
      const { text, calls } = said.answer;
      const made = calls.map(({ id = "", name, input }) => {
        return { id, type: "function" as const, function: { name, arguments: JSON.stringify(input) } };
      });
      return [{ role: "assistant", content: text, ...(made.length > 0 && { tool_calls: made }) }];
    }
    if ("results" in said)
      return said.results.map(({ of, text }) => ({ role: "tool", tool_call_id: of, content: text }));
    const image = { type: "image_url" as const, image_url: { url: `data:${jpeg};base64,${said.picture}` } };
    const content = [{ type: "text" as const, text: said.user }, ...(said.picture === undefined ? [] : [image])];
    return [{ role: "user", content }];
  };
  return {
    name: "chat",
    async ask(conversation, { stream, key = "good-key", model = "gpt-test", timeout = 10_000, more = {} } = {}) {
      const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0, timeout });
      const { name, description, schema } = tool;
      const tools = [{ type: "function" as const, function: { name, description, parameters: schema } }];
      const request = { model, messages: conversation.flatMap(toMessages), tools, ...more };
      const streamed = { ...request, stream_options: { include_usage: true } };
      const { completions } = client.chat;
      const asked = stream ? completions.stream(streamed).finalChatCompletion() : completions.create(request);
      const { choices, usage } = await asked;
      return {
        text: choices[0]?.message.content ?? "",
        calls: (choices[0]?.message.tool_calls ?? []).flatMap((call) =>
          call.type === "function"
            ? { id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) }
            : [],
        ),
        usage: {
          input: usage?.prompt_tokens ?? 0,
          output: usage?.completion_tokens ?? 0,
          cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
        },
      };
    },
  };
}

function googleClient(baseUrl: string): LlmClient {
  const toContent = (said: Said) => {
    if ("answer" in said) {
      const { text, calls } = said.answer;
      const made = calls.map(({ name, input }) => ({ functionCall: { name, args: input as Record<string, unknown> } }));
      return { role: "model", parts: [...(text === "" ? [] : [{ text }]), ...made] };
    }
    if ("results" in said) {
      const toPart = ({ name, text }: (typeof said.results)[number]) => {
        return { functionResponse: { name, response: { content: text } } };
      };
      return { role: "user", parts: said.results.map(toPart) };
    }
    const { picture } = said;
    const pictures = picture === undefined ? [] : [{ inlineData: { mimeType: jpeg, data: picture } }];
    return { role: "user", parts: [{ text: said.user }, ...pictures] };
  };
  return {
    name: "google",
    async ask(conversation, { stream, key = "good-key", model = "gemini-test", timeout = 10_000, more = {} } = {}) {
      const httpOptions = { baseUrl, timeout, extraBody: { ...more } };
      const { models } = new GoogleGenAI({ apiKey: key, httpOptions });
      const { name, description, schema } = tool;
      const tools = [{ functionDeclarations: [{ name, description, parametersJsonSchema: schema }] }];
      const request = { model, contents: conversation.map(toContent), config: { tools } };
      const answers = stream
        ? await Array.fromAsync(await models.generateContentStream(request))
        : [await models.generateContent(request)];
      const parts = answers.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
      const usage = answers.at(-1)?.usageMetadata;
      return {
        text: parts.map(({ text }) => text ?? "").join(""),
        calls: parts.flatMap(({ functionCall: call }) =>
          call ? { id: call.id, name: call.name ?? "", input: call.args } : [],
        ),
        usage: {
          input: usage?.promptTokenCount ?? 0,
          output: usage?.candidatesTokenCount ?? 0,
          cached: usage?.cachedContentTokenCount ?? 0,
        },
      };
    },
  };
}
