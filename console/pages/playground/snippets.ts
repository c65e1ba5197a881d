import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { PlaygroundAction, SdkCall } from "./actions.ts";

/** A request of a session, for which code is written. */
export interface SnippetRequest {
  readonly action: PlaygroundAction;
  readonly body: JsonObject;
  readonly sessionId: string;
  /** Address of the service, without a slash at the end. */
  readonly baseUrl: string;
}

/** Longest list of arguments on one line. */
const lineLength = 60;

/** Fields that locate an element or a point. */
const targetFields = ["selector", "frame", "ref", "x", "y"];

export const snippetLanguages = [
  ["curl", curlSnippet],
  ["TypeScript", typescriptSnippet],
  ["Python", pythonSnippet],
] as const;

/** Returns the path of a request. */
export const pathOf = ({ path }: PlaygroundAction, sessionId: string): string => path.replace("{id}", sessionId);

function curlSnippet({ action, body, sessionId, baseUrl }: SnippetRequest): string {
  const url = `${baseUrl}${pathOf(action, sessionId)}`;
  const authorization = `-H "Authorization: Bearer $PILOTHOUSE_API_KEY"`;
  if (action.verb === "GET") return `curl -sS ${authorization} \\\n  ${url}\n`;
  const json = JSON.stringify(body).replaceAll("'", String.raw`'\''`);
  return `curl -sS ${authorization} \\\n  -H 'Content-Type: application/json' \\\n  -d '${json}' \\\n  ${url}\n`;
}

export function typescriptSnippet({ action, body, sessionId, baseUrl }: SnippetRequest): string {
  const file = fileOf(action, body);
  const call = action.sdk
    ? `session.${typescriptCall(action.sdk, body)}`
    : `client.request(${JSON.stringify(action.verb)}, ${JSON.stringify(pathOf(action, sessionId))}, ${typescript({ body })})`;
  return [
    file && `import { writeFile } from "node:fs/promises";`,
    `import { Pilothouse } from "@pilothouse/sdk";`,
    "",
    `const client = new Pilothouse({ baseUrl: ${JSON.stringify(baseUrl)} }); // Reads PILOTHOUSE_API_KEY.`,
    action.sdk && `const session = await client.sessions.get(${JSON.stringify(sessionId)});`,
    file ? `await writeFile(${JSON.stringify(file)}, await ${call});` : `console.log(await ${call});`,
    "",
  ]
    .filter((line) => line !== undefined)
    .join("\n");
}

function pythonSnippet({ action, body, sessionId, baseUrl }: SnippetRequest): string {
  const file = fileOf(action, body);
  const call = action.sdk
    ? `session.${pythonCall(action.sdk, body)}`
    : `client.request(${JSON.stringify(action.verb)}, ${JSON.stringify(pathOf(action, sessionId))}, ${python(body)})`;
  return [
    file && "from pathlib import Path",
    "from pilothouse import Pilothouse",
    "",
    `client = Pilothouse(base_url=${JSON.stringify(baseUrl)})  # Reads PILOTHOUSE_API_KEY.`,
    action.sdk && `session = client.sessions.get(${JSON.stringify(sessionId)})`,
    file ? `Path(${JSON.stringify(file)}).write_bytes(${call})` : `print(${call})`,
    "",
  ]
    .filter((line) => line !== undefined)
    .join("\n");
}

/** Returns the name of the file that a method of the SDKs returns, or undefined if it returns JSON. */
function fileOf({ sdk }: PlaygroundAction, { format }: JsonObject): string | undefined {
  if (sdk?.name === "pdf") return "page.pdf";
  return sdk?.name === "screenshot" ? `page.${typeof format === "string" ? format : "png"}` : undefined;
}

/** Returns the fields of a body for a method of the SDKs: the fields of an action and of its request in one object. */
function flatten({ given = [] }: SdkCall, body: JsonObject): JsonObject {
  if (given.includes("action") || given.includes("condition")) return body;
  const { action, kind: _kind, ...rest } = body;
  if (!isObject(action)) return rest;
  const { kind, ...fields } = action;
  return { ...fields, ...rest };
}

function typescriptCall(sdk: SdkCall, body: JsonObject): string {
  const { name, given = [] } = sdk;
  // The first argument has all fields.
  if (name === "interact") return `interact(${typescript(body)})`;
  const flat = flatten(sdk, body);
  const entries = Object.entries(flat);
  const target = Object.fromEntries(entries.filter(([field]) => targetFields.includes(field)));
  const hasTarget = isObject(body.action);
  const others = entries.filter(([field]) => !(given.includes(field) || (hasTarget && field in target)));
  const positional = given.map((field) => (field === "target" ? shorten(target) : shorten(flat[field] ?? "")));
  const isOption = hasTarget && !given.includes("target") && Object.keys(target).length > 0;
  const options = { ...(isOption && { target: shorten(target) }), ...Object.fromEntries(others) };
  const all = [...positional, ...(Object.keys(options).length > 0 ? [options] : [])];
  return `${name}(${all.map((value) => typescript(value)).join(", ")})`;
}

/** Returns the selector alone if a target or a condition has nothing else. */
function shorten(value: JsonValue): JsonValue {
  if (!isObject(value)) return value;
  const { selector, kind = "selector", ...rest } = value;
  return kind === "selector" && selector !== undefined && Object.keys(rest).length === 0 ? selector : value;
}

function pythonCall(sdk: SdkCall, body: JsonObject): string {
  const { name, given = [] } = sdk;
  const flat = flatten(sdk, body);
  const names = given.map((field) => (field === "target" ? "selector" : field));
  const missing = names.findIndex((field) => flat[field] === undefined);
  const positional = missing === -1 ? names : names.slice(0, missing);
  const keywords = Object.entries(flat).filter(([field]) => !positional.includes(field));
  const all = [
    ...positional.map((field) => python(shorten(flat[field] ?? ""))),
    ...keywords.map(([field, value]) => `${field}=${python(value)}`),
  ];
  const line = all.join(", ");
  return line.length <= lineLength ? `${name}(${line})` : `${name}(\n    ${all.join(",\n    ")},\n)`;
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns an expression of TypeScript. */
function typescript(value: JsonValue, indent = ""): string {
  if (!isObject(value)) return JSON.stringify(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return "{}";
  const line = `{ ${entries.map(([name, inner]) => `${name}: ${typescript(inner)}`).join(", ")} }`;
  if (line.length <= lineLength) return line;
  const inside = `${indent}  `;
  return `{\n${entries.map(([name, inner]) => `${inside}${name}: ${typescript(inner, inside)},\n`).join("")}${indent}}`;
}

/** Returns an expression of Python. */
function python(value: JsonValue): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, inner]) => `${JSON.stringify(name)}: ${python(inner)}`)
    .join(", ")}}`;
}
