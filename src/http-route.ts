import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { http } from "./gen/google/api/annotations_pb.ts";

/** How a method is reached over REST. */
export interface HttpRoute {
  readonly verb: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly template: string;
  /** The JSON body is the whole request message, but for what the path says. */
  readonly hasBody: boolean;
}

/** Reads a method's google.api.http rule; methods without one are not served over REST. */
export function httpRouteOf(method: DescMethod): HttpRoute | undefined {
  const { pattern, body } = getOption(method, http);
  if (pattern.case === undefined) return undefined;
  if (pattern.case === "custom" || (body !== "" && body !== "*"))
    throw new Error(`${method}: only plain verbs and body "*" are supported`);
  const hasBody = body === "*";
  if (hasBody && (pattern.case === "get" || pattern.case === "delete"))
    throw new Error(`${method}: GET and DELETE take no body`);
  const verbs = { get: "GET", post: "POST", put: "PUT", patch: "PATCH", delete: "DELETE" } as const;
  return { verb: verbs[pattern.case], template: pattern.value, hasBody };
}
