import { firstExample, type OpenApiDocument, type Operation, type Parameter } from "../openapi/model.ts";

/** An operation with its verb and path. */
export interface CurlTarget {
  readonly verb: string;
  readonly path: string;
  readonly operation: Operation;
}

/** Returns the example of an operation as a curl command for a POSIX shell. */
export function curlOf(target: CurlTarget, parameters: readonly Parameter[], document: OpenApiDocument): string {
  const { verb, path, operation } = target;
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const isStream = Object.values(operation.responses).some(
    (response) => "content" in response && response.content?.["text/event-stream"],
  );
  const method = verb === "get" ? "" : ` -X ${verb.toUpperCase()}`;
  const example = media && firstExample(media);
  const parts = [
    `curl${isStream ? " -N" : ""}${method} ${quoted(`${document.servers[0]?.url}${filled(path, parameters)}`)}`,
    operation.security?.length !== 0 && '-H "Authorization: Bearer $PILOTHOUSE_API_KEY"',
    ...(type === "application/octet-stream" ? ["-T FILE"] : [type && `-H "Content-Type: ${type}"`]),
    example !== undefined && `-d ${quoted(bodyOf(type, example))}`,
  ];
  return parts.filter((part) => typeof part === "string").join(" \\\n  ");
}

/** Replaces the parameters of a path with their examples. */
export function fillPath(path: string, parameters: readonly Parameter[]): string {
  const inPath = parameters.filter((parameter) => parameter.in === "path");
  return inPath.reduce(
    (text, { name, example }) => text.replace(`{${name}}`, encodeURIComponent(String(example))),
    path,
  );
}

function filled(path: string, parameters: readonly Parameter[]): string {
  const query = parameters.filter((parameter) => parameter.in === "query" && parameter.required);
  const whole = fillPath(path, parameters);
  const search = query.map(({ name, example }) => `${name}=${encodeURIComponent(String(example ?? ""))}`).join("&");
  return search === "" ? whole : `${whole}?${search}`;
}

function bodyOf(type: string | undefined, example: unknown): string {
  if (type === "application/x-www-form-urlencoded") {
    return new URLSearchParams(Object.entries(example ?? {}).map(([name, value]) => [name, String(value)])).toString();
  }
  const line = JSON.stringify(example);
  return line.length <= 60 ? line : JSON.stringify(example, null, 2);
}

function quoted(text: string): string {
  return /^[\w:/.?=%-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
