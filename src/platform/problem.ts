import { create, type JsonObject } from "@bufbuild/protobuf";
import { type Problem, ProblemSchema } from "../gen/pilothouse/v1/common_pb.ts";
import { errorTable } from "./error-table.ts";
import type { Failure } from "./errors.ts";

/** Converts a failure to a problem, independent of transport. The type URI is `errorsBase` with the slug. */
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

/** Formats a problem as in RFC 9457: extensions are top-level members, and empty members are omitted. */
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
