import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { EventSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { event_type, Idempotency } from "../../src/gen/pilothouse/v1/options_pb.ts";
import type { HttpRoute } from "../../src/kernel/http-route.ts";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import { isWritable } from "../../src/platform/rest-json/field-names.ts";
import { policiesOf } from "../policies/index.ts";
import { parseTemplate } from "../rest/template.ts";
import type { Comments } from "./comments.ts";
import { eventExample, kindExamples, pathExample, requestExample, requestMember, responseExample } from "./examples.ts";
import { commonHeaders, referToHeader, referToParameter, referToParameterNamed } from "./headers.ts";
import type { SchemaCatalogue } from "./json-schema.ts";
import type {
  Introduction,
  JsonSchema,
  MediaType,
  Operation,
  Parameter,
  Reference,
  RequestBody,
  Response,
  WebSocketOperation,
} from "./model.ts";
import { operationIdOf, serviceTag, titleOf } from "./operation-names.ts";
import { requiredMembers } from "./presence.ts";
import { type ProblemCatalogue, problemsOf } from "./problem-responses.ts";

/** Shared data of all operations. */
export interface OperationContext {
  readonly comments: Comments;
  readonly schemas: SchemaCatalogue;
  readonly problems: ProblemCatalogue;
  /** Messages with an event type. */
  readonly payloads: readonly DescMessage[];
}

/** Describes a method as a REST operation. */
export function describeOperation(served: ServedMethod, route: HttpRoute, context: OperationContext): Operation {
  const { method } = served;
  const { variables } = parseTemplate(route.template);
  const inPath = new Set(variables);
  return {
    ...introduce(served, context),
    parameters: [
      ...pathParameters(served, variables, context),
      ...(route.hasBody ? [] : queryParameters(method.input, new Set([...inPath, route.rawBody?.name ?? ""]), context)),
      ...headerParametersOf(served, route),
    ],
    ...(route.hasBody && { requestBody: requestBody(served, inPath, context) }),
    ...(route.rawBody && { requestBody: { required: true, content: rawContent(served) } }),
    responses: {
      ...success(served, context),
      ...context.problems.refer(problemsOf(served)),
    },
  };
}

/** Relayed payloads are opaque and are not documented here. */
const relayedMessage: JsonSchema = { type: "object", description: "A message of the Chrome DevTools Protocol." };

/** Describes a bidirectional method as a WebSocket. */
export function describeWebSocket(served: ServedMethod, context: OperationContext): WebSocketOperation {
  const { method, rules } = served;
  const { variables } = parseTemplate(rules.websocket);
  return {
    ...introduce(served, context),
    parameters: pathParameters(served, variables, context),
    ...(rules.relay
      ? { client: relayedMessage, server: relayedMessage, example: { id: 1, method: "Browser.getVersion" } }
      : {
          client: context.schemas.request(method.input),
          server: context.schemas.response(method.output),
          example: requestExample(method.input, new Set(variables)),
        }),
  };
}

function introduce(served: ServedMethod, { comments }: OperationContext): Introduction {
  const { method, rules } = served;
  const comment = comments(`${method.parent.typeName}.${method.name}`);
  return {
    operationId: operationIdOf(method),
    tags: [serviceTag(method.parent)],
    summary: titleOf(method),
    description: [comment, ...callNotes(served)].join("\n\n"),
    security: rules.public ? [] : [{ bearer: rules.scope === "" ? [] : [rules.scope] }],
  };
}

/**
 * Returns notes for the callers of a method: the requirements of policies, and whether the method runs to completion.
 */
function callNotes(served: ServedMethod): string[] {
  const requirements = policiesOf(served).map((policy) => policy.describe?.(served) ?? "");
  const notes = [
    ...requirements,
    served.rules.runsToCompletion && "Runs to completion even if the client disconnects.",
  ].filter(Boolean);
  return notes.length > 0 ? [notes.join(" ")] : [];
}

function pathParameters(
  { method }: ServedMethod,
  variables: readonly string[],
  { comments, schemas }: OperationContext,
): Parameter[] {
  return variables.map((name) => {
    const field = method.input.fields.find((candidate) => candidate.name === name);
    if (!field) throw new Error(`${method.input.typeName} has no field ${name}, which its path names`);
    return {
      name,
      in: "path",
      description: comments(`${method.input.typeName}.${name}`),
      required: true,
      schema: schemas.parameter(field),
      example: pathExample(field, method),
    };
  });
}

function queryParameters(
  input: DescMessage,
  inPath: ReadonlySet<string>,
  { comments, schemas }: OperationContext,
): Parameter[] {
  const required = requiredMembers(input);
  const fields = input.fields.filter((field) => !inPath.has(field.name) && isWritable(field));
  return fields.map((field) => {
    const example = requestMember(field, required.has(field.name));
    return {
      name: field.name,
      in: "query",
      description: comments(`${input.typeName}.${field.name}`),
      ...(required.has(field.name) && { required: true }),
      schema: schemas.parameter(field),
      ...(example !== undefined && { example }),
    };
  });
}

function headerParametersOf(served: ServedMethod, route: HttpRoute): Reference[] {
  const keepsCommands = route.verb === "POST" && served.rules.idempotency === Idempotency.WORKER;
  return [
    ...(served.keepsAnswers ? [referToParameter("IdempotencyKey")] : []),
    ...(keepsCommands ? [referToParameter("CommandKey")] : []),
    ...(served.resumesAfter ? [referToParameter("LastEventId")] : []),
    ...served.rules.headers.map(referToParameterNamed),
    referToParameter("RequestId"),
    referToParameter("RequestTimeout"),
  ];
}

function requestBody({ method, rules }: ServedMethod, inPath: Set<string>, { schemas }: OperationContext): RequestBody {
  const type = rules.formBody ? "application/x-www-form-urlencoded" : "application/json";
  const required = [...requiredMembers(method.input)].some((name) => !inPath.has(name));
  const kinds = kindExamples(method.input, inPath);
  const examples = kinds.length > 1 ? { examples: Object.fromEntries(kinds) } : undefined;
  return {
    required,
    content: {
      [type]: {
        schema: schemas.request(method.input),
        ...(examples ?? { example: requestExample(method.input, inPath) }),
      },
    },
  };
}

function success(served: ServedMethod, context: OperationContext): Record<string, Response> {
  const { method, rules, kind } = served;
  const headers = {
    ...commonHeaders,
    ...(served.keepsAnswers && { "Idempotency-Replayed": referToHeader("Idempotency-Replayed") }),
  };
  const status = rules.successStatus || 200;
  if (status === 204) return { 204: { description: "Done. There is no body.", headers } };
  const description = context.comments(method.output.typeName);
  if (method.output.typeName === "google.api.HttpBody") {
    return { [status]: { description: "The file itself.", headers, content: rawContent(served) } };
  }
  const content: Record<string, MediaType> =
    kind === "server_streaming"
      ? { "text/event-stream": eventStream(served, context) }
      : {
          "application/json": {
            schema: context.schemas.response(method.output),
            example: responseExample(method.output),
          },
        };
  const answer = { description, headers, content };
  return { [status]: answer, ...(rules.createdStatus > 0 && { [rules.createdStatus]: answer }) };
}

/** Returns the representations of a raw body. */
function rawContent({ rules: { mediaTypes } }: ServedMethod): Record<string, MediaType> {
  const types = mediaTypes.length > 0 ? mediaTypes : ["application/octet-stream"];
  return Object.fromEntries(types.map((type) => [type, { schema: rawSchema(type) }]));
}

function rawSchema(type: string): JsonSchema {
  if (type === "application/json") return { type: ["object", "array"] };
  return { type: "string", ...(!type.startsWith("text/") && { format: "binary" }) };
}

/** Describes Server-Sent Events: `id` and `event` are the fields `id` and `type` of the message, `data` is its JSON. */
function eventStream({ method, rules }: ServedMethod, { schemas, payloads }: OperationContext): MediaType {
  const item = method.output;
  const own = payloads.filter(({ file }) => file.name === method.parent.file.name);
  const isEvent = item.typeName === EventSchema.typeName;
  const candidates = own.length > 0 ? own : payloads;
  const shown = candidates.find((payload) => getOption(payload, event_type).endsWith(".completed")) ?? own[0];
  const data = isEvent && shown ? eventExample(item, shown) : responseExample(item);
  const lines = [
    typeof data.id === "string" && `id: ${data.id}`,
    typeof data.type === "string" && `event: ${data.type}`,
    `data: ${JSON.stringify(data)}`,
  ].filter((line) => line !== false);
  return {
    schema: {
      type: "string",
      description:
        "Server-Sent Events. `data` of each is JSON of the schema `x-event-data`; a comment is sent every 15 s. A failure " +
        "midway is a last event `error`, whose data is a problem document." +
        (rules.public ? "" : " A WebSocket at the same path has the same JSON, one message per frame."),
      "x-event-data": schemas.response(item),
    },
    example: `: open\n\n${lines.join("\n")}\n\n`,
  };
}
