import { type DescField, type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { http } from "../gen/google/api/annotations_pb.ts";

/** How a method is reached over REST. */
export interface HttpRoute {
  readonly verb: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly template: string;
  /** A GET that only reads can be asked for its headers alone. One that makes something cannot. */
  readonly hasHead: boolean;
  /** Further paths that mean the same. Their `{token}` is shown as a bearer. */
  readonly aliases: readonly string[];
  /** The JSON body is the whole request message, but for what the path says. */
  readonly hasBody: boolean;
  /** The google.api.HttpBody field that a raw body fills. What the path does not say of the rest, the query does. */
  readonly rawBody: DescField | undefined;
}

/** Reads a method's google.api.http rule; methods without one are not served over REST. */
export function httpRouteOf(method: DescMethod): HttpRoute | undefined {
  const { pattern, body, additionalBindings } = getOption(method, http);
  if (pattern.case === undefined) return undefined;
  if (pattern.case === "custom") throw new Error(`${method}: only plain verbs are supported`);
  const rawBody = body === "" || body === "*" ? undefined : rawBodyOf(method, body);
  if (body !== "" && (pattern.case === "get" || pattern.case === "delete"))
    throw new Error(`${method}: GET and DELETE take no body`);
  const verbs = { get: "GET", post: "POST", put: "PUT", patch: "PATCH", delete: "DELETE" } as const;
  const aliases = additionalBindings.map(({ pattern: alias }) => {
    if (alias.case !== pattern.case) throw new Error(`${method}: an additional binding has another verb`);
    return alias.value;
  });
  const verb = verbs[pattern.case];
  const hasHead = verb === "GET" && method.idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENT;
  return { verb, template: pattern.value, hasHead, aliases, hasBody: body === "*", rawBody };
}

function rawBodyOf(method: DescMethod, name: string): DescField {
  const field = method.input.fields.find((candidate) => candidate.name === name);
  if (field?.message?.typeName !== "google.api.HttpBody") {
    throw new Error(`${method}: a body is "*" or a field of type google.api.HttpBody`);
  }
  return field;
}

/** Says whether the answer of a method is bytes of some type, and not JSON. */
export function answersRaw({ output }: DescMethod): boolean {
  return output.typeName === "google.api.HttpBody";
}
