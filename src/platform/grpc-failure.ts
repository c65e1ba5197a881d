import { create, fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { Metadata, type ServiceError, type StatusObject, status } from "@grpc/grpc-js";
import { type Problem, ProblemSchema } from "../gen/pilothouse/v1/common_pb.ts";
import { asFailure, type Extensions, errorTable, Failure, isErrorSlug } from "./errors.ts";

/** Trailer of the fleet link that holds a Problem; `type` in it is the bare slug. */
const PROBLEM_TRAILER = "problem-bin";

/** Trailer that holds the seconds of a failure's Retry-After. */
const RETRY_TRAILER = "retry-after";

/** Turns whatever was thrown into the status that ends a call of the fleet link. */
export function failureToStatus(thrown: unknown): Partial<StatusObject> {
  const failure = asFailure(thrown);
  const { slug, extensions, detail, errors, retryAfter } = failure;
  const { code, title, status: httpStatus } = errorTable[slug];
  const problem = create(ProblemSchema, {
    type: slug,
    title,
    status: httpStatus,
    detail: detail ?? "",
    errors: errors.map(({ field, message }) => ({ field, message })),
    extensions: { ...extensions },
  });
  const metadata = new Metadata();
  metadata.set(PROBLEM_TRAILER, Buffer.from(toBinary(ProblemSchema, problem)));
  if (retryAfter !== undefined) metadata.set(RETRY_TRAILER, String(retryAfter));
  return { code, details: detail ?? title, metadata };
}

/**
 * Turns the error of a call of the fleet link back into the failure that the other side threw. A call that ended without
 * one failed on its way: past its deadline it is `session-timeout`, unreachable `capacity-unavailable`, else `internal`.
 */
export function statusToFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (!isServiceError(error)) return asFailure(error);
  const [bytes] = error.metadata.get(PROBLEM_TRAILER);
  if (bytes instanceof Buffer) return problemToFailure(fromBinary(ProblemSchema, bytes), retryAfterOf(error), error);
  if (error.code === status.DEADLINE_EXCEEDED) return new Failure("session-timeout", {}, { cause: error });
  if (error.code === status.UNAVAILABLE) {
    return new Failure("capacity-unavailable", {}, { retryAfter: 1, cause: error });
  }
  return asFailure(error);
}

/** Says whether an error came from grpc-js with a status of the other side or of the transport. */
export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && "metadata" in error && error.metadata instanceof Metadata;
}

function problemToFailure(problem: Problem, retryAfter: number | undefined, cause: unknown): Failure {
  if (!isErrorSlug(problem.type)) return asFailure(cause);
  return new Failure(problem.type, toExtensions(problem.extensions), {
    ...(problem.detail !== "" && { detail: problem.detail }),
    errors: problem.errors.map(({ field, message }) => ({ field, message })),
    ...(retryAfter !== undefined && { retryAfter }),
  });
}

function retryAfterOf(error: ServiceError): number | undefined {
  const [value] = error.metadata.get(RETRY_TRAILER);
  return value === undefined ? undefined : Number(value);
}

function toExtensions(json: JsonObject | undefined): Extensions {
  const extensions: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(json ?? {})) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") extensions[key] = value;
  }
  return extensions;
}
