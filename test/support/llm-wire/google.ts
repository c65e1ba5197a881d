import type { Blob, Content, FunctionCall, FunctionResponse, Part } from "@google/genai";
import {
  asText,
  type Body,
  type Dialect,
  data,
  fieldsOf,
  tokensOf,
  unknownIn,
  unmatched,
  type WireFault,
} from "./dialect.ts";

/** Fields of a request: ai.google.dev/api/generate-content#request-body. Nested fields are those of the client's types. */
const knownOfRequest = new Set([
  "contents",
  "systemInstruction",
  "generationConfig",
  "tools",
  "toolConfig",
  "safetySettings",
  "cachedContent",
]);
const known = {
  content: fieldsOf<Content>("role", "parts"),
  part: fieldsOf<Part>("text", "inlineData", "functionCall", "functionResponse", "thought", "thoughtSignature"),
};
const knownOfPart: Readonly<Record<string, ReadonlySet<string>>> = {
  inlineData: fieldsOf<Blob>("mimeType", "data"),
  functionCall: fieldsOf<FunctionCall>("id", "name", "args"),
  functionResponse: fieldsOf<FunctionResponse>("id", "name", "response", "parts"),
};

const max = {
  /** Bytes of a request including images; 100 MB since 2026: ai.google.dev/gemini-api/docs/image-understanding. */
  request: 20_971_520,
  /** Tokens: ai.google.dev/gemini-api/docs/models. */
  tokens: 1_048_576,
};

const refused = (message: string): WireFault => ({ status: 400, message });

const unknownName = (name: string, at: string): WireFault =>
  refused(`Invalid JSON payload received. Unknown name "${name}"${at && ` at '${at}'`}: Cannot find field.`);

function checkPart(part: Body, at: string): WireFault | undefined {
  const unknown = unknownIn(part, known.part);
  if (unknown !== undefined) return unknownName(unknown, at);
  for (const [name, value] of Object.entries<Body>(part)) {
    const extra = typeof value === "object" ? unknownIn(value, knownOfPart[name]) : undefined;
    if (extra !== undefined) return unknownName(extra, `${at}.${name}`);
  }
  return undefined;
}

/** The message after calls has one response for each call: ai.google.dev/gemini-api/docs/function-calling. */
function checkPairs(contents: readonly Body[]): WireFault | undefined {
  let calls: string[] = [];
  for (const { parts } of [...contents, { parts: [] }]) {
    const namesOf = (kind: string) => parts.flatMap((part: Body) => part[kind]?.name ?? []);
    const results: string[] = namesOf("functionResponse");
    const { result, call } = unmatched(calls, results);
    if (calls.length !== results.length || result !== undefined || call !== undefined)
      return refused(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
      );
    calls = namesOf("functionCall");
  }
  return undefined;
}

function check(body: Body): WireFault | undefined {
  const unknown = unknownIn(body, knownOfRequest);
  if (unknown !== undefined) return unknownName(unknown, "");
  for (const [index, content] of body.contents.entries()) {
    const at = `contents[${index}]`;
    const extra = unknownIn(content, known.content);
    if (extra !== undefined) return unknownName(extra, at);
    const wrong = content.parts.map((part: Body, n: number) => checkPart(part, `${at}.parts[${n}]`)).find(Boolean);
    if (wrong) return wrong;
  }
  const lone = checkPairs(body.contents);
  if (lone) return lone;
  if (JSON.stringify(body).length > max.request)
    return refused(`Request payload size exceeds the limit: ${max.request} bytes.`);
  const tokens = tokensOf(body);
  const message = `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${max.tokens}).`;
  return tokens > max.tokens ? refused(message) : undefined;
}

/** Statuses and their names: ai.google.dev/gemini-api/docs/troubleshooting#error-codes. */
const kinds: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** ai.google.dev/api/generate-content */
export const google: Dialect = {
  name: "google",
  wrongKey: { status: 400, message: "API key not valid. Please pass a valid API key.", code: "API_KEY_INVALID" },
  unknownModel: (model) => ({
    status: 404,
    message: `models/${model} is not found for API version v1beta`,
  }),
  keyOf: (headers) => String(headers["x-goog-api-key"] ?? ""),
  modelOf: (path) => /models\/([^:]+):/.exec(path)?.[1] ?? "",
  isStream: (path) => path.includes(":streamGenerateContent"),
  check,
  resultsOf: ({ contents }) =>
    contents
      .flatMap(({ parts }: Body) => parts)
      .flatMap(({ functionResponse }: Body) =>
        functionResponse ? [asText(functionResponse.response.content ?? functionResponse.response)] : [],
      ),
  fault: ({ status, message, code }) => ({
    error: {
      code: status,
      message,
      status: kinds[status] ?? "UNKNOWN",
      ...(code !== undefined && {
        details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: code }],
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
        finishReason: "STOP",
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: usage.input,
      candidatesTokenCount: usage.output,
      cachedContentTokenCount: usage.cached,
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
  streamFault: (fault) => data(google.fault(fault)),
};
