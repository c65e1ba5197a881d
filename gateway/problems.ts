import type { JsonObject } from "@bufbuild/protobuf";
import type { FastifyError } from "fastify";
import { errorTable } from "../src/platform/error-table.ts";
import { asFailure, type Failure, failFields } from "../src/platform/errors.ts";
import type { Log } from "../src/platform/log.ts";
import { problemJson, toProblem } from "../src/platform/problem.ts";

/** Turns what was thrown into what an HTTP client reads, and logs it where the fault is ours. */
export class Problems {
  readonly #errorsBase: string;
  readonly #log: Log;

  constructor(errorsBase: string, log: Log) {
    this.#errorsBase = errorsBase;
    this.#log = log;
  }

  /** Turns anything thrown into a failure, and logs those that are ours. */
  failure(thrown: unknown, requestId: string): Failure {
    const failure = fromFastify(thrown) ?? asFailure(thrown);
    if (failure.slug === "internal") {
      this.#log.error({ err: failure.cause ?? failure, request_id: requestId }, "request failed");
    }
    return failure;
  }

  /** Writes a failure as a problem document. */
  document(failure: Failure, requestId: string): JsonObject {
    return problemJson(toProblem(failure, this.#errorsBase, requestId));
  }

  /** Turns anything thrown into the status, headers and body of an answer. */
  answer(thrown: unknown, requestId: string): { status: number; headers: Record<string, string>; body: string } {
    const failure = this.failure(thrown, requestId);
    return {
      status: errorTable[failure.slug].status,
      headers: {
        "content-type": "application/problem+json",
        ...(failure.retryAfter !== undefined && { "retry-after": String(failure.retryAfter) }),
        ...(errorTable[failure.slug].status === 401 && { "www-authenticate": schemeFor(failure) }),
      },
      body: `${JSON.stringify(this.document(failure, requestId))}\n`,
    };
  }
}

/** How a client may show itself: at the token endpoint by HTTP Basic (RFC 6749, 5.2). */
function schemeFor({ extensions }: Failure): string {
  return extensions.error === "invalid_client" ? 'Basic realm="pilothouse"' : "Bearer";
}

/** Translates what Fastify says of a request that it could not read. Whatever else has a code is no fault of the client's. */
function fromFastify(thrown: unknown): Failure | undefined {
  if (!(thrown instanceof Error && "code" in thrown && typeof thrown.code === "string")) return undefined;
  const { code, statusCode, message } = thrown as FastifyError;
  switch (code) {
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return failFields("bad-request", { "Content-Type": "must be application/json" });
    case "FST_ERR_BAD_URL":
      return failFields("bad-request", { path: "is not a valid URL path" });
    case "ECONNRESET":
      // Fastify gives this status to an error of the request alone: the client has left in the middle of its body.
      return statusCode === 400 ? failFields("bad-request", { body: "must arrive whole" }) : undefined;
    default:
      return code.startsWith("FST_ERR_") && statusCode !== undefined && statusCode < 500
        ? failFields("bad-request", { request: message })
        : undefined;
  }
}
