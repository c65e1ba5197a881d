import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionCreateParamsBase,
  ChatCompletionSystemMessageParam,
  ChatCompletionToolMessageParam,
  ChatCompletionUserMessageParam,
} from "openai/resources/chat/completions/completions";
import {
  asText,
  type Body,
  type Dialect,
  data,
  fieldsOf,
  halves,
  unknownIn,
  unmatched,
  type WireAnswer,
  type WireFault,
} from "./dialect.ts";
import { checkSize, openai, unknownParameter } from "./openai.ts";

/** Fields of the official client's types. */
const knownOfRequest = fieldsOf<ChatCompletionCreateParamsBase>(
  ...(["model", "messages", "tools", "tool_choice", "stream", "stream_options", "max_tokens"] as const),
  ...(["max_completion_tokens", "temperature", "top_p", "stop", "response_format", "user"] as const),
  ...(["parallel_tool_calls", "seed", "frequency_penalty"] as const),
);
const knownOfMessage: Readonly<Record<string, ReadonlySet<string>>> = {
  system: fieldsOf<ChatCompletionSystemMessageParam>("role", "content", "name"),
  user: fieldsOf<ChatCompletionUserMessageParam>("role", "content", "name"),
  assistant: fieldsOf<ChatCompletionAssistantMessageParam>("role", "content", "name", "tool_calls", "refusal"),
  tool: fieldsOf<ChatCompletionToolMessageParam>("role", "content", "tool_call_id"),
};

/** Results must directly follow their calls: developers.openai.com/api/docs/guides/function-calling. */
function checkPairs(messages: readonly Body[]): string | undefined {
  let calls: string[] = [];
  for (const [index, { role, tool_calls: made = [], tool_call_id: id }] of [...messages, {}].entries()) {
    if (role === "tool") {
      if (unmatched(calls, [id]).result !== undefined)
        return `Invalid parameter: messages[${index}] with role 'tool' must be a response to a preceding message with 'tool_calls'.`;
      calls = calls.filter((call) => call !== id);
      continue;
    }
    if (calls.length > 0)
      return `An assistant message with 'tool_calls' must be followed by tool messages: ${calls.join()}`;
    calls = made.map((call: Body) => call.id);
  }
  return undefined;
}

function check(body: Body): WireFault | undefined {
  const unknown = unknownIn(body, knownOfRequest);
  if (unknown !== undefined) return unknownParameter(unknown);
  for (const [index, message] of body.messages.entries()) {
    const extra = unknownIn(message, knownOfMessage[message.role] ?? new Set());
    if (extra !== undefined) return unknownParameter(`messages[${index}].${extra}`);
  }
  const lone = checkPairs(body.messages);
  return lone === undefined ? checkSize(body) : { status: 400, message: lone };
}

/** developers.openai.com/api/reference/resources/chat */
export const chat: Dialect = {
  ...openai,
  name: "chat",
  check,
  resultsOf: ({ messages }) =>
    messages.filter(({ role }: Body) => role === "tool").map(({ content }: Body) => asText(content)),
  whole: ({ model, text, calls, usage }) => ({
    id: "chatcmpl_1",
    object: "chat.completion",
    created: 1,
    model,
    choices: [
      {
        index: 0,
        logprobs: null,
        message: {
          role: "assistant",
          content: text ?? null,
          refusal: null,
          ...(calls.length > 0 && { tool_calls: calls.map(toCall) }),
        },
        finish_reason: calls.length > 0 ? "tool_calls" : "stop",
      },
    ],
    usage: toUsage(usage),
  }),
  stream({ model, text, calls, usage }) {
    const chunk = (rest: object) => ({ id: "chatcmpl_1", object: "chat.completion.chunk", created: 1, model, ...rest });
    const delta = (said: object, finish: string | null = null) =>
      chunk({ choices: [{ index: 0, delta: said, finish_reason: finish }] });
    return [
      delta({ role: "assistant", content: "" }),
      ...(text === undefined ? [] : halves(text).map((content) => delta({ content }))),
      ...calls.map((call, index) => delta({ tool_calls: [{ index, ...toCall(call) }] })),
      delta({}, calls.length > 0 ? "tool_calls" : "stop"),
      chunk({ choices: [], usage: toUsage(usage) }),
    ]
      .map(data)
      .concat("data: [DONE]\n\n");
  },
  streamFault: (fault) => data(chat.fault(fault)),
};

const toCall = ({ id, name, input }: WireAnswer["calls"][number]) => ({
  id,
  type: "function",
  function: { name, arguments: JSON.stringify(input) },
});
const toUsage = ({ input, output, cached }: WireAnswer["usage"]) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: cached },
});
