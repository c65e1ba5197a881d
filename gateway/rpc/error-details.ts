import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import type { Failure } from "../../src/platform/errors.ts";

/** A google.rpc error detail with its type. */
export interface ErrorDetail {
  readonly desc: DescMessage;
  readonly value: Message;
}

/**
 * Returns the details of a failure for Connect and gRPC (google.rpc.error_details): ErrorInfo always, BadRequest for
 * field faults, RetryInfo if the REST response has a Retry-After.
 */
export function errorDetails(failure: Failure, requestId: string): ErrorDetail[] {
  const metadata = Object.fromEntries(Object.entries(failure.extensions).map(([name, value]) => [name, String(value)]));
  const info = create(ErrorInfoSchema, {
    reason: failure.slug,
    domain: "pilothouse",
    metadata: { ...metadata, request_id: requestId },
  });
  const details: ErrorDetail[] = [{ desc: ErrorInfoSchema, value: info }];
  if (failure.errors.length > 0) {
    const fieldViolations = failure.errors.map(({ field, message }) => ({ field, description: message }));
    details.push({ desc: BadRequestSchema, value: create(BadRequestSchema, { fieldViolations }) });
  }
  if (failure.retryAfter !== undefined) {
    const retryDelay = { seconds: BigInt(Math.ceil(failure.retryAfter)), nanos: 0 };
    details.push({ desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay }) });
  }
  return details;
}
