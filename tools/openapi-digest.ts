import type {
  Introduction,
  JsonSchema,
  MediaType,
  OpenApiDocument,
  Operation,
  Parameter,
  PathItem,
  Reference,
  Response,
} from "../gateway/openapi/model.ts";

/** Headers of nearly all responses. The digest marks responses that lack one of these. */
const usualHeaders = [
  "X-Request-Id",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-RateLimit-Bucket",
];

const legend = `HTTP contract of the service, with a line for each operation and schema. Written by \`npm run accept-contract\`
from the OpenAPI document of the code; \`npm run check\` compares it.

An operation: verb, path, function, scope, (parameters and body), statuses. \`?\` marks optional members, \`*\` an
object that may have other fields, \`=\` a default, \`(1..64)\` bounds of a value, length or count, \`[...]\` after a
status the headers of its response besides ${usualHeaders.join(", ")}.`;

/** Formats an OpenAPI document for review, with one line per operation, schema, parameter and header. */
export function digestOf(document: OpenApiDocument): string {
  const { paths, webhooks = {}, components } = document;
  const websockets = Object.entries(document["x-websockets"] ?? {});
  const sections: Readonly<Record<string, readonly string[]>> = {
    Operations: operationLines(paths),
    WebSockets: websockets.map(
      ([route, socket]) =>
        `${route} ${introduce(socket)} (${socket.parameters.map(parameterText).join(", ")}) ` +
        `${typeOf(socket.client)} <-> ${typeOf(socket.server)}`,
    ),
    Webhooks: eventLines(webhooks),
    "Events of streams": eventLines(document["x-stream-events"] ?? {}),
    Parameters: lines(components.parameters, parameterText),
    Headers: lines(components.headers, ({ schema }) => typeOf(schema)),
    Problems: lines(components.responses, responseText),
    Schemas: lines(components.schemas, typeOf),
  };
  const texts = Object.entries(sections).map(([title, content]) => `${title}\n\n${content.join("\n")}\n`);
  return `${legend}\n\n${texts.join("\n")}`;
}

function lines<T>(entries: Readonly<Record<string, T>>, text: (entry: T) => string): string[] {
  return Object.entries(entries).map(([name, entry]) => `${name}: ${text(entry)}`);
}

function operationLines(paths: Readonly<Record<string, PathItem>>): string[] {
  return Object.entries(paths).flatMap(([route, item]) =>
    Object.entries(item).map(([verb, operation]) => `${verb.toUpperCase()} ${route} ${operationText(operation)}`),
  );
}

function eventLines(events: Readonly<Record<string, PathItem>>): string[] {
  return lines(events, (item) => Object.values(item).map(operationText).join(" "));
}

function operationText(operation: Operation): string {
  const { parameters = [], requestBody, responses } = operation;
  const inputs = parameters.map(parameterText);
  if (requestBody) inputs.push(`body${requestBody.required ? "" : "?"}: ${contentText(requestBody.content)}`);
  const statuses = Object.entries(responses).map(([status, response]) => {
    const answer = isReference(response) ? slugsOf(response.$ref) : responseText(response);
    return `${status} ${answer}`.trim();
  });
  return `${introduce(operation)} (${inputs.join(", ")}) -> ${statuses.join(", ")}`;
}

/** Returns the function name and the required scopes. */
function introduce({ operationId, security }: Introduction): string {
  if (!security) return operationId;
  const scopes = security.map(({ bearer = [] }) => bearer.join(" ") || "any");
  return `${operationId} ${scopes.join(" | ") || "public"}`;
}

function parameterText(parameter: Parameter | Reference): string {
  if (isReference(parameter)) return nameOf(parameter.$ref);
  const { name, in: where, required = false, schema } = parameter;
  return `${where} ${name}${required ? "" : "?"}: ${typeOf(schema)}`;
}

function responseText({ headers = {}, content = {} }: Response): string {
  const others = Object.keys(headers).filter((name) => !usualHeaders.includes(name));
  const missing = usualHeaders.filter((name) => headers[name] === undefined).map((name) => `-${name}`);
  const marks = [...others, ...(Object.keys(headers).length > 0 ? missing : [])];
  return [contentText(content), marks.length > 0 ? `[${marks.join(" ")}]` : ""].filter(Boolean).join(" ");
}

function contentText(content: Readonly<Record<string, MediaType>>): string {
  const texts = Object.entries(content).map(([type, { schema }]) => {
    const shape = schema ? typeOf(schema) : "bytes";
    return type === "application/json" ? shape : `${type} ${shape}`;
  });
  return texts.join(" | ");
}

function isReference(value: object): value is Reference {
  return "$ref" in value;
}

/** Returns the problems of a response, whose component name is its status and slugs. */
function slugsOf(reference: string): string {
  return nameOf(reference).split(".").slice(1).join(" ");
}

function nameOf(reference: string): string {
  return reference.split("/").at(-1) ?? reference;
}

/** Formats a type in TypeScript notation with its limits. Other keywords are appended as JSON. */
function typeOf(schema: JsonSchema): string {
  const { description: _, "x-default": ofBody, default: standard = ofBody, ...rest } = schema;
  const text = shapeOf(rest);
  return standard === undefined ? text : `${text} = ${JSON.stringify(standard)}`;
}

function shapeOf(schema: JsonSchema): string {
  const { $ref, const: constant, enum: values, oneOf, anyOf, allOf, discriminator, type, not, ...rest } = schema;
  const isNullable = Array.isArray(type) && type.includes("null");
  const kind = typeof type === "string" ? type : type?.find((each) => each !== "null");
  const parts: string[] = [];
  if ($ref !== undefined) parts.push(nameOf($ref));
  if (oneOf) parts.push(`${discriminator ? `${discriminator.propertyName} of ` : ""}(${alternatives(oneOf)})`);
  if (anyOf) parts.push(`(${alternatives(anyOf)})`);
  if (allOf) parts.push(...allOf.map(typeOf));
  if (not) parts.push(`not (${typeOf(not)})`);
  if (constant !== undefined) parts.push(`${JSON.stringify(constant)}${unknownKeywords(rest)}`);
  else if (values) parts.push(`${values.map((value) => JSON.stringify(value)).join("|")}${unknownKeywords(rest)}`);
  else if (kind !== undefined || Object.keys(rest).length > 0) parts.push(plainType(kind, rest));
  return `${parts.join(" & ")}${isNullable ? "|null" : ""}`;
}

function alternatives(schemas: readonly JsonSchema[]): string {
  return schemas.map(typeOf).join(" | ");
}

function plainType(kind: string | undefined, schema: JsonSchema): string {
  if (schema.properties || schema.required || kind === "object") return objectType(schema);
  const { items, minItems, maxItems, minLength, maxLength, minimum, maximum, format, ...more } = schema;
  const { "x-event-data": event, ...rest } = more;
  if (items) return `[${typeOf(items)}]${bounds(minItems, maxItems)}${unknownKeywords(rest)}`;
  const name = `${format ?? kind ?? "string"}${event ? ` of ${typeOf(event)}` : ""}`;
  return `${name}${bounds(minLength ?? minimum, maxLength ?? maximum)}${unknownKeywords(rest)}`;
}

function objectType(schema: JsonSchema): string {
  const { properties = {}, required = [], additionalProperties: others, propertyNames: keys, ...more } = schema;
  const { minProperties, maxProperties, ...rest } = more;
  const names = [...new Set([...Object.keys(properties), ...required])];
  const fields = names.map((name) => {
    const field = properties[name];
    return `${name}${required.includes(name) ? "" : "?"}${field ? `: ${typeOf(field)}` : ""}`;
  });
  if (typeof others === "object") fields.push(`<${typeOf(keys ?? { type: "string" })}>: ${typeOf(others)}`);
  else if (others !== false) fields.push("*");
  return `{${fields.join(", ")}}${bounds(minProperties, maxProperties)}${unknownKeywords(rest)}`;
}

function bounds(lowest: number | undefined, highest: number | undefined): string {
  return lowest === undefined && highest === undefined ? "" : `(${lowest ?? ""}..${highest ?? ""})`;
}

function unknownKeywords(schema: JsonSchema): string {
  return Object.entries(schema)
    .map(([keyword, value]) => ` ${keyword} ${JSON.stringify(value)}`)
    .join("");
}
