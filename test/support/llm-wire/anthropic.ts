import type {
  Base64ImageSource,
  ImageBlockParam,
  MessageCreateParamsBase,
  MessageParam,
  TextBlockParam,
  ToolResultBlockParam,
  ToolUseBlockParam,
} from "@anthropic-ai/sdk/resources/messages/messages";
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

/** Fields of the official client's types. Others are refused (platform.claude.com/docs/en/api/errors). */
const known = {
  request: fieldsOf<MessageCreateParamsBase>(
    ...(["model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "stop_sequences"] as const),
    ...(["metadata", "thinking", "output_config", "cache_control", "service_tier"] as const),
  ),
  message: fieldsOf<MessageParam>("role", "content"),
  source: fieldsOf<Base64ImageSource>("type", "media_type", "data"),
};
const knownOfBlock: Readonly<Record<string, ReadonlySet<string>>> = {
  text: fieldsOf<TextBlockParam>("type", "text", "cache_control", "citations"),
  image: fieldsOf<ImageBlockParam>("type", "source", "cache_control"),
  tool_use: fieldsOf<ToolUseBlockParam>("type", "id", "name", "input", "cache_control", "caller"),
  tool_result: fieldsOf<ToolResultBlockParam>("type", "tool_use_id", "content", "is_error", "cache_control"),
};

const max = {
  /** Bytes of an image in base64: platform.claude.com/docs/en/build-with-claude/vision#evaluate-image-size. */
  image: 5_242_880,
  /** Bytes of a request: platform.claude.com/docs/en/api/errors#request-size-limits. */
  request: 33_554_432,
  /** Tokens: platform.claude.com/docs/en/build-with-claude/context-windows. */
  tokens: 200_000,
};

/** Statuses and their names: platform.claude.com/docs/en/api/errors#http-errors. */
const kinds: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

const refused = (message: string): WireFault => ({ status: 400, message });

/** Returns what is wrong with a block of a message, if anything. */
function checkBlock(block: Body, at: string): string | undefined {
  const fields = knownOfBlock[block.type];
  if (!fields) return `${at}: Input tag '${block.type}' found using 'type' does not match any of the expected tags`;
  const unknown = unknownIn(block, fields);
  if (unknown !== undefined) return `${at}.${block.type}.${unknown}: Extra inputs are not permitted`;
  if (block.type === "image" && block.source.type === "base64") {
    const extra = unknownIn(block.source, known.source);
    if (extra !== undefined) return `${at}.image.source.base64.${extra}: Extra inputs are not permitted`;
    const bytes = block.source.data.length;
    if (bytes > max.image)
      return `${at}.image.source.base64: image exceeds 5 MB maximum: ${bytes} bytes > ${max.image} bytes`;
  }
  return checkBlocks(partsOf(block.content), `${at}.${block.type}.content`);
}

function checkBlocks(blocks: readonly Body[], at: string): string | undefined {
  return blocks.map((block, index) => checkBlock(block, `${at}.${index}`)).find((wrong) => wrong !== undefined);
}

/**
 * Tool results must come first in the message after their calls:
 * platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls.
 */
function checkPairs(messages: readonly Body[]): string | undefined {
  let calls: string[] = [];
  for (const [index, { content }] of [...messages, { content: [] }].entries()) {
    const parts = partsOf(content);
    const results = parts.filter(({ type }) => type === "tool_result").map(({ tool_use_id: id }) => id);
    const { result, call } = unmatched(calls, results);
    if (result !== undefined)
      return `messages.${index}.content: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${result}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    if (call !== undefined)
      return `messages.${index - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${call}`;
    if (parts.slice(0, results.length).some(({ type }) => type !== "tool_result"))
      return `messages.${index}: \`tool_result\` blocks must come first`;
    calls = parts.filter(({ type }) => type === "tool_use").map(({ id }) => id);
  }
  return undefined;
}

function check(body: Body): WireFault | undefined {
  if (JSON.stringify(body).length > max.request)
    return { status: 413, message: "Request exceeds the maximum size of 32 MB" };
  if (typeof body.max_tokens !== "number") return refused("max_tokens: Field required");
  const unknown = unknownIn(body, known.request);
  if (unknown !== undefined) return refused(`${unknown}: Extra inputs are not permitted`);
  for (const [index, message] of body.messages.entries()) {
    const extra = unknownIn(message, known.message);
    if (extra !== undefined) return refused(`messages.${index}.${extra}: Extra inputs are not permitted`);
    const wrong = checkBlocks(partsOf(message.content), `messages.${index}.content`);
    if (wrong !== undefined) return refused(wrong);
  }
  const lone = checkPairs(body.messages);
  if (lone !== undefined) return refused(lone);
  const tokens = tokensOf(body);
  return tokens > max.tokens ? refused(`prompt is too long: ${tokens} tokens > ${max.tokens} maximum`) : undefined;
}

/** platform.claude.com/docs/en/api/messages and .../build-with-claude/streaming */
export const anthropic: Dialect = {
  name: "anthropic",
  wrongKey: { status: 401, message: "invalid x-api-key" },
  unknownModel: (model) => ({ status: 404, message: `model: ${model}` }),
  // Header of the official client since version 1, or the older header: platform.claude.com/docs/en/api/overview.
  keyOf: (headers) => String(headers["x-api-key"] ?? bearer(headers)),
  modelOf: (_, { model }) => model,
  isStream: (_, { stream }) => stream === true,
  check,
  resultsOf: ({ messages }) =>
    messages
      .flatMap(({ content }: Body) => partsOf(content))
      .filter(({ type }: Body) => type === "tool_result")
      .map(({ content }: Body) => asText(content)),
  fault: ({ status, message }) => ({
    type: "error",
    error: { type: kinds[status] ?? "api_error", message },
    request_id: "req_1",
  }),
  whole: ({ model, text, calls, usage }) => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    stop_sequence: null,
    content: [
      ...(text === undefined ? [] : [{ type: "text", text }]),
      ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })),
    ],
    stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
    usage: {
      input_tokens: usage.input - usage.cached,
      output_tokens: usage.output,
      cache_read_input_tokens: usage.cached,
      cache_creation_input_tokens: 0,
    },
  }),
  stream(answer) {
    const whole = anthropic.whole(answer) as Body;
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
  // platform.claude.com/docs/en/build-with-claude/streaming#error-events
  streamFault: (fault) => event(anthropic.fault(fault) as Body),
};

const event = (json: Body): string => `event: ${json.type}\n${data(json)}`;
