import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { Metadata, type ServiceError, type StatusObject, status } from "@grpc/grpc-js";
import { type Problem, ProblemSchema } from "../../gen/pilothouse/v1/common_pb.ts";
import { errorTable, isErrorSlug } from "../error-table.ts";
import { asFailure, Failure, fail, restoreFailure } from "../errors.ts";
import { toProblem } from "../problem.ts";

/** Trailer with a Problem. The last part of its `type` is the slug. */
const problemTrailer = "problem-bin";

/** Trailer with the seconds of a failure's Retry-After. */
const retryTrailer = "retry-after";

/**
 * Thrown if a call reached the wrong process, because another worker took over the address. The caller receives the
 * error of an unreachable worker.
 */
export class WrongAddressee extends Error {
  override readonly name = "WrongAddressee";
}

/** Converts a thrown value to a status for fleet calls. */
export function failureToStatus(thrown: unknown): Partial<StatusObject> {
  if (thrown instanceof WrongAddressee) return { code: status.UNAVAILABLE, details: thrown.message };
  const failure = asFailure(thrown);
  const { slug, detail, retryAfter } = failure;
  const { code, title } = errorTable[slug];
  const problem = toProblem(failure, "", "");
  const metadata = new Metadata();
  metadata.set(problemTrailer, Buffer.from(toBinary(ProblemSchema, problem)));
  if (retryAfter !== undefined) metadata.set(retryTrailer, String(retryAfter));
  return { code, details: detail ?? title, metadata };
}

/**
 * Converts a call's error back to the failure thrown by the other side. If the other side sent no failure, an exceeded
 * deadline becomes `session-timeout`, an unknown method `driver-not-integrated`, and any other error `internal`. The
 * addresses of an unreachable process are only in the cause.
 */
export function statusToFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (!isServiceError(error)) return asFailure(error);
  const [bytes] = error.metadata.get(problemTrailer);
  if (bytes instanceof Buffer) return problemToFailure(fromBinary(ProblemSchema, bytes), retryAfterOf(error), error);
  if (error.code === status.DEADLINE_EXCEEDED) {
    const detail = "the operation timed out; the session continues, try again";
    return fail("session-timeout", {}, { detail, cause: error });
  }
  if (error.code === status.UNAVAILABLE) {
    const detail = "a process of the service could not be reached: try again in a moment";
    return fail("internal", {}, { detail, retryAfter: 1, cause: error });
  }
  if (error.code === status.UNIMPLEMENTED) {
    // No cause: the worker answered, so the connection is intact.
    const detail = "the session runs on a worker of the previous release, which cannot do this: create a new session";
    return fail("driver-not-integrated", {}, { detail });
  }
  return asFailure(error);
}

export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && "metadata" in error && error.metadata instanceof Metadata;
}

function problemToFailure(problem: Problem, retryAfter: number | undefined, cause: unknown): Failure {
  const { type, detail, errors, extensions = {} } = problem;
  const slug = type.slice(type.lastIndexOf("/") + 1);
  if (!isErrorSlug(slug)) return asFailure(cause);
  return restoreFailure(slug, extensions, {
    ...(detail !== "" && { detail }),
    errors: errors.map(({ field, message }) => ({ field, message })),
    ...(retryAfter !== undefined && { retryAfter }),
  });
}

function retryAfterOf(error: ServiceError): number | undefined {
  const [value] = error.metadata.get(retryTrailer);
  return value === undefined ? undefined : Number(value);
}
