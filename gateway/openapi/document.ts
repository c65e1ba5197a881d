import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { subscribableEvents } from "../../src/events/subscribable-events.ts";
import { EventSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { event_type, subscribable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { TestPingEventSchema } from "../../src/gen/pilothouse/v1/webhook_pb.ts";
import type { ServedService } from "../../src/kernel/registry.ts";
import type { Comments } from "./comments.ts";
import { eventExample } from "./examples.ts";
import { deliveryHeaders, headerParameters, responseHeaders } from "./headers.ts";
import { SchemaCatalogue } from "./json-schema.ts";
import type { JsonSchema, OpenApiDocument, Operation, PathItem, WebSocketOperation } from "./model.ts";
import { pascalCase, serviceTag } from "./operation-names.ts";
import { describeOperation, describeWebSocket, type OperationContext } from "./operations.ts";
import { ProblemCatalogue } from "./problem-responses.ts";
import { findRequestUses } from "./request-uses.ts";

/** Inputs of the document besides the descriptors of the services. */
export interface OpenApiOptions {
  /** Public URL of the service. */
  readonly publicUrl: string;
  /** Prefix of problem type URIs. */
  readonly errorsBase: string;
  readonly version: string;
  readonly comments: Comments;
}

const about = `A remote browser that programs, agents and people can share.

Keys are snake_case. Times are ISO 8601 in UTC. Durations are whole numbers named \`*_ms\` or \`*_seconds\`. A field that
is null counts as absent, except in PATCH, where a null clears it. Unknown fields and parameters are refused. Bodies are
JSON up to 1 MiB (16 KiB where no bearer is needed), with at most 5,000 keys and 20,000 list elements. A value with
\`kind\` is one of several shapes; the fields of the shape are next to \`kind\`.

Every error is a problem document (RFC 9457): decide by its \`type\`, which is also the address of a page that explains it.`;

/** Builds the OpenAPI 3.1 document of services: their REST methods, WebSockets, webhooks and stream events. */
export function buildOpenApi(services: readonly ServedService[], options: OpenApiOptions): OpenApiDocument {
  const { publicUrl, errorsBase, version, comments } = options;
  const schemas = new SchemaCatalogue(comments, findRequestUses(services));
  const problems = new ProblemCatalogue(schemas, errorsBase);
  const files = new Set(services.map(({ service }) => service.file));
  const streamed = [...files]
    .flatMap(({ messages }) => messages.filter((desc) => hasOption(desc, event_type)))
    .filter((desc) => !getOption(desc, subscribable) && desc.typeName !== TestPingEventSchema.typeName);
  const context = { comments, schemas, problems, payloads: [...subscribableEvents, ...streamed] };
  const paths = describePaths(services, context);
  const webhooks = describeWebhooks([...subscribableEvents, TestPingEventSchema], context);
  const streamEvents = describeStreamEvents(streamed, context);
  const websockets = describeWebSockets(services, context);
  return {
    openapi: "3.1.0",
    info: {
      title: "Pilothouse",
      version,
      description: about.replaceAll(/(?<!\n)\n(?!\n)/g, " "),
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: publicUrl }],
    tags: services.map(({ service }) => ({ name: serviceTag(service), description: comments(service.typeName) })),
    security: [{ bearer: [] }],
    paths,
    webhooks,
    "x-stream-events": streamEvents,
    "x-websockets": websockets,
    components: {
      schemas: schemas.schemas,
      responses: problems.responses,
      parameters: headerParameters,
      headers: responseHeaders,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An API key, or the access token of a login." },
      },
    },
  };
}

function describePaths(services: readonly ServedService[], context: OperationContext): Record<string, PathItem> {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const { methods } of services) {
    for (const served of methods) {
      const { route } = served;
      if (route) {
        const path = paths[route.template] ?? {};
        path[route.verb.toLowerCase()] = describeOperation(served, route, context);
        paths[route.template] = path;
      }
    }
  }
  return paths;
}

function describeWebSockets(
  services: readonly ServedService[],
  context: OperationContext,
): Record<string, WebSocketOperation> {
  const streams = services.flatMap(({ methods }) => methods).filter(({ rules }) => rules.websocket !== "");
  return Object.fromEntries(streams.map((served) => [served.rules.websocket, describeWebSocket(served, context)]));
}

/** Describes each event type as webhook endpoints receive it. */
function describeWebhooks(payloads: readonly DescMessage[], context: OperationContext): Record<string, PathItem> {
  return eventItems(payloads, (payload) => ({
    // Inline, because oapi-codegen drops schemas that no path uses, and its Go code would then not compile.
    ...describeEvent(payload, context.schemas.inline(payload), context),
    parameters: deliveryHeaders,
  }));
}

function describeStreamEvents(payloads: readonly DescMessage[], context: OperationContext): Record<string, PathItem> {
  return eventItems(payloads, (payload) => describeEvent(payload, context.schemas.response(payload), context));
}

function eventItems(
  payloads: readonly DescMessage[],
  post: (payload: DescMessage) => Operation,
): Record<string, PathItem> {
  return Object.fromEntries(payloads.map((payload) => [getOption(payload, event_type), { post: post(payload) }]));
}

function describeEvent(payload: DescMessage, data: JsonSchema, { comments, schemas }: OperationContext): Operation {
  const type = getOption(payload, event_type);
  const description = comments(payload.typeName).replace(/^`data` of `[^`]+`: /, "");
  const event = {
    allOf: [schemas.response(EventSchema)],
    type: "object",
    properties: { type: { type: "string", const: type }, data },
  };
  return {
    operationId: `on${type.split(/[._]/).map(pascalCase).join("")}`,
    tags: ["Events"],
    summary: type,
    security: [],
    description: description.slice(0, 1).toUpperCase() + description.slice(1),
    requestBody: {
      required: true,
      content: { "application/json": { schema: event, example: eventExample(EventSchema, payload) } },
    },
    responses: { "2XX": { description: "Any 2xx status counts as received." } },
  };
}
