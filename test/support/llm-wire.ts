import type { IncomingHttpHeaders } from "node:http";

/** An answer, before it is put into a protocol. */
export interface WireAnswer {
  readonly model: string;
  readonly text?: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly usage: { readonly input: number; readonly output: number; readonly cached: number };
}

/** A refusal, before it is put into a protocol. */
export interface WireFault {
  readonly status: number;
  readonly kind: string;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: string;
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of protocols that are not ours.
type Body = any;

/** A wire protocol, as its provider documents it. */
export interface Dialect {
  readonly name: "anthropic" | "openai" | "chat" | "google";
  readonly wrongKey: WireFault;
  keyOf(headers: IncomingHttpHeaders): string;
  modelOf(path: string, body: Body): string;
  isStream(path: string, body: Body): boolean;
  /** Says what is wrong with a request. */
  check(body: Body): string | undefined;
  resultsOf(body: Body): string[];
  fault(fault: WireFault): object;
  whole(answer: WireAnswer): object;
  stream(answer: WireAnswer): string[];
}

const data = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;
const bearer = ({ authorization = "" }: IncomingHttpHeaders): string => authorization.replace(/^Bearer /, "");
const halves = (text: string): string[] => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)];
const asText = (value: Body): string => {
  if (Array.isArray(value)) return value.map(({ type, text }) => text ?? `[${type}]`).join("\n");
  return typeof value === "string" ? value : JSON.stringify(value);
};

/** Names the first field that the protocol does not have. */
function unknownField(body: Body, known: string): string | undefined {
  const names = new Set(known.split(" "));
  const found = Object.keys(body).find((name) => !names.has(name));
  return found === undefined ? undefined : `${found}: Extra inputs are not permitted`;
}

/** Says which result has no call before it, and which call has no result after it. */
function unmatched(calls: readonly string[], results: readonly string[]): string | undefined {
  const lone = results.find((id) => !calls.includes(id));
  if (lone !== undefined) return `unexpected tool result ${lone}: no tool call before it has this id`;
  const open = calls.find((id) => !results.includes(id));
  return open === undefined ? undefined : `tool call ${open} has no result after it`;
}

/** https://docs.anthropic.com/en/api/messages and .../messages-streaming */
const anthropic: Dialect = {
  name: "anthropic",
  wrongKey: { status: 401, kind: "authentication_error", message: "invalid x-api-key" },
  keyOf: (headers) => String(headers["x-api-key"] ?? ""),
  modelOf: (_, { model }) => model,
  isStream: (_, { stream }) => stream === true,
  check(body) {
    const known =
      "model messages max_tokens system tools tool_choice stream temperature top_p top_k stop_sequences metadata";
    const parts: Body[] = body.messages.flatMap(({ content }: Body) => (Array.isArray(content) ? content : []));
    const calls = parts.filter(({ type }) => type === "tool_use").map(({ id }) => id);
    const results = parts.filter(({ type }) => type === "tool_result").map(({ tool_use_id: id }) => id);
    if (typeof body.max_tokens !== "number") return "max_tokens: Field required";
    return unknownField(body, known) ?? unmatched(calls, results);
  },
  resultsOf: ({ messages }) =>
    messages
      .flatMap(({ content }: Body) => (Array.isArray(content) ? content : []))
      .filter(({ type }: Body) => type === "tool_result")
      .map(({ content }: Body) => asText(content)),
  fault: ({ kind, message }) => ({ type: "error", error: { type: kind, message } }),
  whole: ({ model, text, calls, usage }) => ({
    ...{ id: "msg_1", type: "message", role: "assistant", model, stop_sequence: null },
    content: [
      ...(text === undefined ? [] : [{ type: "text", text }]),
      ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })),
    ],
    stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
    usage: {
      ...{ input_tokens: usage.input - usage.cached, output_tokens: usage.output },
      ...{ cache_read_input_tokens: usage.cached, cache_creation_input_tokens: 0 },
    },
  }),
  stream(answer) {
    const whole = anthropic.whole(answer) as Body;
    const event = (json: Body): string => `event: ${json.type}\n${data(json)}`;
    const start = { ...whole, content: [], stop_reason: null, usage: { ...whole.usage, output_tokens: 1 } };
    const blocks = whole.content.flatMap((block: Body, index: number) => {
      const isText = block.type === "text";
      const deltas = halves(isText ? block.text : JSON.stringify(block.input)).map((part) =>
        isText ? { type: "text_delta", text: part } : { type: "input_json_delta", partial_json: part },
      );
      return [
        { type: "content_block_start", index, content_block: { ...block, ...(isText ? { text: "" } : { input: {} }) } },
        { type: "ping" },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ];
    });
    const delta = { stop_reason: whole.stop_reason, stop_sequence: null };
    return [
      { type: "message_start", message: start },
      ...blocks,
      { type: "message_delta", delta, usage: { output_tokens: answer.usage.output } },
      { type: "message_stop" },
    ].map(event);
  },
};

/** https://platform.openai.com/docs/api-reference/responses and .../responses-streaming */
const openai: Dialect = {
  name: "openai",
  wrongKey: { status: 401, kind: "invalid_request_error", message: "Incorrect API key provided" },
  keyOf: bearer,
  modelOf: (_, { model }) => model,
  isStream: (_, { stream }) => stream === true,
  check(body) {
    const known =
      "model input instructions tools tool_choice stream store include max_output_tokens temperature top_p text reasoning parallel_tool_calls metadata truncation user prompt_cache_key";
    const calls = body.input.filter(({ type }: Body) => type === "function_call").map((item: Body) => item.call_id);
    const results = body.input
      .filter(({ type }: Body) => type === "function_call_output")
      .map((item: Body) => item.call_id);
    return unknownField(body, known) ?? unmatched(calls, results);
  },
  resultsOf: ({ input }) =>
    input.filter(({ type }: Body) => type === "function_call_output").map(({ output }: Body) => asText(output)),
  fault: ({ kind, message }) => ({ error: { message, type: kind, param: null, code: null } }),
  whole: ({ model, text, calls, usage }) => ({
    ...{ id: "resp_1", object: "response", created_at: 1, status: "completed", model, error: null },
    ...{ incomplete_details: null, instructions: null, tools: [], tool_choice: "auto", parallel_tool_calls: true },
    output: [
      ...(text === undefined
        ? []
        : [
            {
              ...{ type: "message", id: "msg_1", status: "completed", role: "assistant" },
              content: [{ type: "output_text", text, annotations: [] }],
            },
          ]),
      ...calls.map(({ id, name, input }) => ({
        ...{ type: "function_call", id: `fc_${id}`, call_id: id, name, status: "completed" },
        arguments: JSON.stringify(input),
      })),
    ],
    usage: {
      ...{ input_tokens: usage.input, input_tokens_details: { cached_tokens: usage.cached } },
      ...{ output_tokens: usage.output, output_tokens_details: { reasoning_tokens: 0 } },
      total_tokens: usage.input + usage.output,
    },
  }),
  stream(answer) {
    const response = openai.whole(answer) as Body;
    const begun = { ...response, status: "in_progress", output: [], usage: null };
    const items = response.output.flatMap((item: Body, index: number) => {
      const at = { output_index: index, item_id: item.id };
      const added = {
        ...item,
        status: "in_progress",
        ...(item.type === "message" ? { content: [] } : { arguments: "" }),
      };
      const text = item.type === "message" ? item.content[0].text : item.arguments;
      const part = { ...at, content_index: 0 };
      const inner =
        item.type === "message"
          ? [
              {
                type: "response.content_part.added",
                ...part,
                part: { type: "output_text", text: "", annotations: [] },
              },
              ...halves(text).map((delta) => ({ type: "response.output_text.delta", ...part, delta })),
              { type: "response.output_text.done", ...part, text },
              { type: "response.content_part.done", ...part, part: item.content[0] },
            ]
          : [
              ...halves(text).map((delta) => ({ type: "response.function_call_arguments.delta", ...at, delta })),
              { type: "response.function_call_arguments.done", ...at, arguments: text },
            ];
      return [
        { type: "response.output_item.added", output_index: index, item: added },
        ...inner,
        { type: "response.output_item.done", output_index: index, item },
      ];
    });
    return [
      { type: "response.created", response: begun },
      { type: "response.in_progress", response: begun },
      ...items,
      { type: "response.completed", response },
    ].map((event, sequence) => `event: ${event.type}\n${data({ ...event, sequence_number: sequence })}`);
  },
};

/** https://platform.openai.com/docs/api-reference/chat */
const chat: Dialect = {
  ...openai,
  name: "chat",
  check(body) {
    const known =
      "model messages tools tool_choice stream stream_options max_tokens temperature top_p stop response_format user parallel_tool_calls";
    const calls = body.messages.flatMap((message: Body) => message.tool_calls ?? []).map(({ id }: Body) => id);
    const results = body.messages.filter(({ role }: Body) => role === "tool").map(({ tool_call_id: id }: Body) => id);
    return unknownField(body, known) ?? unmatched(calls, results);
  },
  resultsOf: ({ messages }) =>
    messages.filter(({ role }: Body) => role === "tool").map(({ content }: Body) => asText(content)),
  whole: ({ model, text, calls, usage }) => ({
    ...{ id: "chatcmpl_1", object: "chat.completion", created: 1, model },
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text ?? null,
          ...(calls.length > 0 && { tool_calls: calls.map(chatCall) }),
        },
        finish_reason: calls.length > 0 ? "tool_calls" : "stop",
      },
    ],
    usage: chatUsage(usage),
  }),
  stream({ model, text, calls, usage }) {
    const chunk = (rest: object) => ({ id: "chatcmpl_1", object: "chat.completion.chunk", created: 1, model, ...rest });
    const delta = (said: object, finish: string | null = null) =>
      chunk({ choices: [{ index: 0, delta: said, finish_reason: finish }] });
    return [
      delta({ role: "assistant", content: "" }),
      ...(text === undefined ? [] : halves(text).map((content) => delta({ content }))),
      ...calls.map((call, index) => delta({ tool_calls: [{ index, ...chatCall(call) }] })),
      delta({}, calls.length > 0 ? "tool_calls" : "stop"),
      chunk({ choices: [], usage: chatUsage(usage) }),
    ]
      .map(data)
      .concat("data: [DONE]\n\n");
  },
};
const chatCall = ({ id, name, input }: WireAnswer["calls"][number]) => ({
  ...{ id, type: "function", function: { name, arguments: JSON.stringify(input) } },
});
const chatUsage = ({ input, output, cached }: WireAnswer["usage"]) => ({
  ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  prompt_tokens_details: { cached_tokens: cached },
});

/** https://ai.google.dev/api/generate-content */
const google: Dialect = {
  name: "google",
  wrongKey: { status: 400, kind: "INVALID_ARGUMENT", message: "API key not valid. Please pass a valid API key." },
  keyOf: (headers) => String(headers["x-goog-api-key"] ?? ""),
  modelOf: (path) => /models\/([^:]+):/.exec(path)?.[1] ?? "",
  isStream: (path) => path.includes(":streamGenerateContent"),
  check(body) {
    const known = "contents systemInstruction generationConfig tools toolConfig safetySettings cachedContent labels";
    const parts: Body[] = body.contents.flatMap((content: Body) => content.parts);
    const calls = parts.flatMap(({ functionCall }) => functionCall?.name ?? []);
    const results = parts.flatMap(({ functionResponse }) => functionResponse?.name ?? []);
    if (calls.length !== results.length) return "the number of function responses is not that of function calls";
    return unknownField(body, known) ?? unmatched(calls, results);
  },
  resultsOf: ({ contents }) =>
    contents
      .flatMap(({ parts }: Body) => parts)
      .flatMap(({ functionResponse }: Body) =>
        functionResponse ? [asText(functionResponse.response.content ?? functionResponse.response)] : [],
      ),
  fault: ({ status, kind, message, key }) => ({
    error: {
      ...{ code: status, message, status: kind },
      ...(key !== undefined && {
        details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }],
      }),
    },
  }),
  whole: ({ model, text, calls, usage }) => ({
    candidates: [
      {
        content: {
          role: "model",
          parts: [
            ...(text === undefined ? [] : [{ text }]),
            ...calls.map(({ name, input }) => ({ functionCall: { name, args: input } })),
          ],
        },
        ...{ finishReason: "STOP", index: 0 },
      },
    ],
    usageMetadata: {
      ...{ promptTokenCount: usage.input, candidatesTokenCount: usage.output, cachedContentTokenCount: usage.cached },
      totalTokenCount: usage.input + usage.output,
    },
    modelVersion: model,
  }),
  stream(answer) {
    const { candidates, ...rest } = google.whole(answer) as Body;
    const [{ content, ...ended }] = candidates;
    const parts = content.parts.map((part: Body) => ({
      candidates: [{ content: { role: "model", parts: [part] }, index: 0 }],
    }));
    return [...parts, { candidates: [{ ...ended, content: { role: "model", parts: [{ text: "" }] } }], ...rest }].map(
      data,
    );
  },
};

/** The protocol that is spoken at a path. */
export function dialectOf(path: string): Dialect | undefined {
  if (path === "/v1/messages") return anthropic;
  if (path === "/v1/responses") return openai;
  if (path.endsWith("/chat/completions")) return chat;
  return path.startsWith("/v1beta/models/") ? google : undefined;
}
