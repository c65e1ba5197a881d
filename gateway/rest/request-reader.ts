import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { HttpRoute } from "../../src/kernel/http-route.ts";
import { type FieldFault, fail, failFaults } from "../../src/platform/errors.ts";
import { addFault, isInside } from "../../src/platform/rest-json/faults.ts";
import { isWritable } from "../../src/platform/rest-json/field-names.ts";
import { parseJson } from "../../src/platform/rest-json/parse.ts";
import { compileReader, compileTextReader, type TextReader } from "../../src/platform/rest-json/reader.ts";
import { ruleFaults } from "../../src/platform/validation.ts";

/** Parts of an HTTP request that form its message. */
export interface RequestParts {
  readonly variables: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  /** Body as received; undefined if there was none. */
  readonly body: Buffer | undefined;
}

/**
 * Builds a request message. Throws `not-found` for an invalid path variable, or `validation-failed` with all other
 * faults.
 */
export type RequestReader = (parts: RequestParts) => Message;

/** Compiles the reader of a route's requests, from the path and from the body or query. */
export function compileRequestReader(
  desc: DescMessage,
  route: HttpRoute,
  variables: readonly string[],
  parseBody: (body: Buffer, faults: FieldFault[]) => unknown = parseJson,
): RequestReader {
  const inPath = new Set(variables);
  const pathReaders = variables.map((name) => [name, compileTextReader(fieldNamed(desc, name))] as const);
  const readBody = route.hasBody ? compileReader(desc, inPath) : undefined;
  const inQuery = route.hasBody
    ? []
    : desc.fields.filter((field) => !inPath.has(field.name) && field !== route.rawBody && isWritable(field));
  const queryReaders = new Map(inQuery.map((field) => [field.name, compileTextReader(field)]));
  const mask = desc.fields.find((field) => field.message?.typeName === "google.protobuf.FieldMask");

  return ({ variables: values, query, body }) => {
    const faults: FieldFault[] = [];
    const json = readBody && body !== undefined && body.length > 0 ? parseBody(body, faults) : {};
    const message = readBody ? readBody(json, faults) : create(desc);
    for (const [name, readVariable] of pathReaders) {
      const pathFaults: FieldFault[] = [];
      readVariable([values[name] ?? ""], message, pathFaults);
      if (pathFaults.length > 0) throw fail("not-found", {}, { detail: "no endpoint has this path" });
    }
    readQuery(message, query, queryReaders, faults);
    if (faults.length > 0) throw failFaults("validation-failed", withRuleFaults(faults, desc, message));
    if (mask) setMask(message, mask, json);
    return message;
  };
}

/** Compiles a reader that builds messages from a query. The fault of an unknown parameter lists the known ones. */
export function compileQueryReader(desc: DescMessage): (query: URLSearchParams) => Message {
  const readers = new Map(desc.fields.filter(isWritable).map((field) => [field.name, compileTextReader(field)]));
  return (query) => {
    const faults: FieldFault[] = [];
    const message = create(desc);
    for (const name of new Set(query.keys())) {
      const read = readers.get(name);
      if (read) read(query.getAll(name), message, faults);
      else addFault(faults, name, `is not a known parameter: expected one of ${[...readers.keys()].join(", ")}`);
    }
    const all = withRuleFaults(faults, desc, message);
    if (all.length > 0) throw failFaults("validation-failed", all);
    return message;
  };
}

function fieldNamed(desc: DescMessage, name: string): DescField {
  const field = desc.fields.find((candidate) => candidate.name === name);
  if (!field) throw new Error(`${desc.typeName} has no field ${name}, which its path names`);
  return field;
}

/** Adds the rule violations to the shape faults, except those of fields that could not be read. */
function withRuleFaults(faults: readonly FieldFault[], desc: DescMessage, message: Message): FieldFault[] {
  const isUnread = (path: string) => faults.some(({ field }) => isInside(field, path) || isInside(path, field));
  return [...faults, ...ruleFaults(desc, message).filter(({ field }) => !isUnread(field))];
}

function readQuery(
  message: Message,
  query: RequestParts["query"],
  readers: ReadonlyMap<string, TextReader>,
  faults: FieldFault[],
): void {
  for (const name of Object.keys(query)) {
    const read = readers.get(name);
    const value = query[name];
    if (!read || value === undefined) {
      addFault(faults, name, "is not a known parameter");
    } else {
      read(typeof value === "string" ? [value] : value, message, faults);
    }
  }
}

/** Sets the field mask of a PATCH to the members that the client sent, including null members (as in grpc-gateway). */
function setMask(message: Message, mask: DescField, json: unknown): void {
  const paths = typeof json === "object" && json !== null ? Object.keys(json) : [];
  Reflect.set(message, mask.localName, { $typeName: "google.protobuf.FieldMask", paths });
}
