import type {
  EasyInputMessage,
  ResponseCreateParamsBase,
  ResponseFunctionToolCall,
  ResponseInputImage,
  ResponseInputItem,
  ResponseInputText,
  ResponseOutputMessage,
  ResponseOutputText,
} from "openai/resources/responses/responses";
import {
  asText,
  type Body,
  bearer,
  type Dialect,
  data,
  fieldsOf,
  halves,
  partsOf,
  tokensOf,
  unknownIn,
  unmatched,
  type WireFault,
} from "./dialect.ts";

/** Fields of the official client's types. Others are refused (developers.openai.com/api/docs/guides/error-codes). */
const knownOfRequest = fieldsOf<ResponseCreateParamsBase>(
  ...(["model", "input", "instructions", "tools", "tool_choice", "stream", "store", "include"] as const),
  ...(["max_output_tokens", "temperature", "top_p", "text", "reasoning", "parallel_tool_calls"] as const),
  ...(["metadata", "truncation", "user", "prompt_cache_key"] as const),
);
const knownOfItem: Readonly<Record<string, ReadonlySet<string>>> = {
  message: fieldsOf<EasyInputMessage & ResponseOutputMessage>("type", "role", "content", "id", "status", "phase"),
  function_call: fieldsOf<ResponseFunctionToolCall>("type", "id", "call_id", "name", "arguments", "status"),
  function_call_output: fieldsOf<ResponseInputItem.FunctionCallOutput>("type", "id", "call_id", "output", "status"),
  input_text: fieldsOf<ResponseInputText>("type", "text"),
  input_image: fieldsOf<ResponseInputImage>("type", "image_url", "detail", "file_id"),
  output_text: fieldsOf<ResponseOutputText>("type", "text", "annotations", "logprobs"),
};

const max = {
  /** Bytes of a request, with images: developers.openai.com/api/docs/guides/images-vision#image-input-requirements. */
  request: 52_428_800,
  /** Input tokens, of 400,000 in total with the output: developers.openai.com/api/docs/models/gpt-5-mini. */
  tokens: 272_000,
};

const refused = (message: string, code?: string): WireFault => ({
  status: 400,
  message,
  ...(code !== undefined && { code }),
});

/** Checks the total size of a request. */
export function checkSize(body: Body): WireFault | undefined {
  if (JSON.stringify(body).length > max.request)
    return { status: 413, message: "The request with its images exceeds 50 MB", code: "request_too_large" };
  const message = "Your input exceeds the context window of this model. Please adjust your input and try again.";
  return tokensOf(body) > max.tokens ? refused(message, "context_length_exceeded") : undefined;
}

export const unknownParameter = (at: string): WireFault => refused(`Unknown parameter: '${at}'.`, "unknown_parameter");

function checkItem(item: Body, at: string): WireFault | undefined {
  const unknown = unknownIn(item, knownOfItem[item.type ?? "message"] ?? new Set());
  if (unknown !== undefined) return unknownParameter(`${at}.${unknown}`);
  const inner = partsOf(item.content ?? item.output);
  return inner.map((part, index) => checkItem(part, `${at}.content[${index}]`)).find(Boolean);
}

function check(body: Body): WireFault | undefined {
  const unknown = unknownIn(body, knownOfRequest);
  if (unknown !== undefined) return unknownParameter(unknown);
  const items = partsOf(body.input);
  const wrong = items.map((item, index) => checkItem(item, `input[${index}]`)).find(Boolean);
  if (wrong) return wrong;
  // developers.openai.com/api/docs/guides/function-calling: results refer to calls by `call_id`.
  const idsOf = (kind: string) => items.filter(({ type }) => type === kind).map((item) => item.call_id);
  const { result, call } = unmatched(idsOf("function_call"), idsOf("function_call_output"));
  if (result !== undefined) return refused(`No tool call found for function call output with call_id ${result}.`);
  if (call !== undefined) return refused(`No tool output found for function call ${call}.`);
  return checkSize(body);
}

/** Statuses and their names: developers.openai.com/api/docs/guides/error-codes. */
const kindOf = (status: number): string => {
  if (status === 429) return "tokens";
  return status >= 500 ? "server_error" : "invalid_request_error";
};
const codes: Readonly<Record<number, string>> = { 401: "invalid_api_key", 429: "rate_limit_exceeded" };

/** developers.openai.com/api/reference/resources/responses and .../streaming-events */
export const openai: Dialect = {
  name: "openai",
  wrongKey: { status: 401, message: "Incorrect API key provided" },
  unknownModel: (model) => ({
    status: 404,
    message: `The model '${model}' does not exist or you do not have access to it.`,
    code: "model_not_found",
  }),
  keyOf: bearer,
  modelOf: (_, { model }) => model,
  isStream: (_, { stream }) => stream === true,
  check,
  resultsOf: ({ input }) =>
    partsOf(input)
      .filter(({ type }) => type === "function_call_output")
      .map(({ output }) => asText(output)),
  fault: ({ status, message, code = codes[status] ?? null }) => ({
    error: { message, type: kindOf(status), param: null, code },
  }),
  whole: ({ model, text, calls, usage }) => ({
    id: "resp_1",
    object: "response",
    created_at: 1,
    status: "completed",
    model,
    error: null,
    incomplete_details: null,
    instructions: null,
    tools: [],
    tool_choice: "auto",
    parallel_tool_calls: true,
    output: [
      ...(text === undefined
        ? []
        : [
            {
              type: "message",
              id: "msg_1",
              status: "completed",
              role: "assistant",
              content: [{ type: "output_text", text, annotations: [] }],
            },
          ]),
      ...calls.map(({ id, name, input }) => ({
        type: "function_call",
        id: `fc_${id}`,
        call_id: id,
        name,
        status: "completed",
        arguments: JSON.stringify(input),
      })),
    ],
    usage: {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.input + usage.output,
    },
  }),
  stream(answer) {
    const response = openai.whole(answer) as Body;
    const begun = { ...response, status: "in_progress", output: [], usage: null };
    return [
      { type: "response.created", response: begun },
      { type: "response.in_progress", response: begun },
      ...response.output.flatMap(itemEvents),
      { type: "response.completed", response },
    ].map(event);
  },
  streamFault: ({ message, code = "server_error" }) => event({ type: "error", code, message, param: null }, 99),
};

const event = (json: Body, sequence: number): string =>
  `event: ${json.type}\n${data({ ...json, sequence_number: sequence })}`;

/** Returns the events for one item of an answer. */
function itemEvents(item: Body, index: number): Body[] {
  const at = { output_index: index, item_id: item.id };
  const isMessage = item.type === "message";
  const added = { ...item, status: "in_progress", ...(isMessage ? { content: [] } : { arguments: "" }) };
  const text = isMessage ? item.content[0].text : item.arguments;
  const part = { ...at, content_index: 0 };
  const inner = isMessage
    ? [
        { type: "response.content_part.added", ...part, part: { type: "output_text", text: "", annotations: [] } },
        ...halves(text).map((delta) => ({ type: "response.output_text.delta", ...part, delta })),
        { type: "response.output_text.done", ...part, text },
        { type: "response.content_part.done", ...part, part: item.content[0] },
      ]
    : [
        ...halves(text).map((delta) => ({ type: "response.function_call_arguments.delta", ...at, delta })),
        { type: "response.function_call_arguments.done", ...at, name: item.name, arguments: text },
      ];
  return [
    { type: "response.output_item.added", output_index: index, item: added },
    ...inner,
    { type: "response.output_item.done", output_index: index, item },
  ];
}
