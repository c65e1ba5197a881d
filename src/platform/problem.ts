import { create, type JsonObject } from "@bufbuild/protobuf";
import { type Problem, ProblemSchema } from "../gen/pilothouse/v1/common_pb.ts";
import { errorTable } from "./error-table.ts";
import type { Failure } from "./errors.ts";

/** Renders a failure as a problem, whatever carries it then. Its type URI is the base with the slug behind it. */
export function toProblem(failure: Failure, errorsBase: string, requestId: string): Problem {
  const { slug, detail, errors, extensions } = failure;
  const { title, status, about } = errorTable[slug];
  return create(ProblemSchema, {
    type: `${errorsBase}/${slug}`,
    title,
    status,
    detail: detail ?? about,
    instance: requestId,
    errors: errors.map(({ field, message }) => ({ field, message })),
    extensions: { ...extensions },
  });
}

/** Writes a problem as RFC 9457 has it: extensions stand beside the standard members, and what is empty is left out. */
export function problemJson({ type, title, status, detail, instance, errors, extensions }: Problem): JsonObject {
  return {
    type,
    title,
    status,
    ...(detail !== "" && { detail }),
    ...(instance !== "" && { instance }),
    ...(errors.length > 0 && { errors: errors.map(({ field, message }) => ({ field, message })) }),
    ...extensions,
  };
}
