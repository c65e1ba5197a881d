import { type DescField, type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { http } from "../gen/google/api/annotations_pb.ts";

export interface HttpRoute {
  readonly verb: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly template: string;
  /** Whether HEAD is supported: for GET methods without effects. */
  readonly hasHead: boolean;
  /** Further paths to the same method. Their `{token}` is used as the bearer. */
  readonly aliases: readonly string[];
  /** Whether the JSON body is the request message, apart from path fields. */
  readonly hasBody: boolean;
  /** The google.api.HttpBody field for a raw body. Other fields come from the path or query. */
  readonly rawBody: DescField | undefined;
}

/** Returns the route from a method's google.api.http rule, or undefined if it has none. */
export function httpRouteOf(method: DescMethod): HttpRoute | undefined {
  const { pattern, body, additionalBindings } = getOption(method, http);
  if (pattern.case === undefined) return undefined;
  if (pattern.case === "custom") throw new Error(`${method}: expected a plain verb, got a custom pattern`);
  const rawBody = body === "" || body === "*" ? undefined : rawBodyOf(method, body);
  if (body !== "" && (pattern.case === "get" || pattern.case === "delete"))
    throw new Error(`${method}: GET and DELETE must not have a body`);
  const verbs = { get: "GET", post: "POST", put: "PUT", patch: "PATCH", delete: "DELETE" } as const;
  const aliases = additionalBindings.map(({ pattern: alias }) => {
    if (alias.case !== pattern.case) throw new Error(`${method}: an additional binding must have the same verb`);
    return alias.value;
  });
  const verb = verbs[pattern.case];
  const hasHead = verb === "GET" && method.idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENT;
  return { verb, template: pattern.value, hasHead, aliases, hasBody: body === "*", rawBody };
}

function rawBodyOf(method: DescMethod, name: string): DescField {
  const field = method.input.fields.find((candidate) => candidate.name === name);
  if (field?.message?.typeName !== "google.api.HttpBody") {
    throw new Error(`${method}: the body must be "*" or a field of type google.api.HttpBody`);
  }
  return field;
}

/** Returns whether a method responds with raw bytes instead of JSON. */
export function answersRaw({ output }: DescMethod): boolean {
  return output.typeName === "google.api.HttpBody";
}
