import { create } from "@bufbuild/protobuf";
import { type Problem, ProblemSchema } from "../gen/pilothouse/v1/common_pb.ts";
import { errorTable, type Failure } from "../platform/errors.ts";

/** Writes a failure as a message, for streams on which an error ends a command and not the stream. */
export function toProblemMessage(failure: Failure, errorsBase: string, requestId: string): Problem {
  const { slug, detail, errors, extensions } = failure;
  const { title, status } = errorTable[slug];
  return create(ProblemSchema, {
    type: `${errorsBase}/${slug}`,
    title,
    status,
    detail: detail ?? "",
    instance: requestId,
    errors: errors.map(({ field, message }) => ({ field, message })),
    extensions: { ...extensions },
  });
}
