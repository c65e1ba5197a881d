import type { JsonObject } from "@bufbuild/protobuf";
import type { FastifyError } from "fastify";
import { errorTable } from "../src/platform/error-table.ts";
import { asFailure, type Failure, failFields } from "../src/platform/errors.ts";
import type { Log } from "../src/platform/log.ts";
import { problemJson, toProblem } from "../src/platform/problem.ts";
import { renderProblem } from "./pages/error-page.ts";
import { unscriptedHeaders } from "./pages/shell.ts";

/** Converts errors into problem documents for HTTP clients, and logs internal errors. */
export class Problems {
  readonly #errorsBase: string;
  readonly #log: Log;

  constructor(errorsBase: string, log: Log) {
    this.#errorsBase = errorsBase;
    this.#log = log;
  }

  /** Converts an error into a failure, and logs the failure if it is internal. */
  failure(thrown: unknown, requestId: string): Failure {
    const failure = fromFastify(thrown) ?? asFailure(thrown);
    if (failure.slug === "internal") {
      this.#log.error({ err: failure.cause ?? failure, request_id: requestId }, "failed to handle a request");
    }
    return failure;
  }

  /** Returns a failure as a problem document. */
  document(failure: Failure, requestId: string): JsonObject {
    return problemJson(toProblem(failure, this.#errorsBase, requestId));
  }

  /** Converts an error into the status, headers and body of a response: a problem document, or a page that shows it. */
  answer(
    thrown: unknown,
    requestId: string,
    isPage = false,
  ): { status: number; headers: Record<string, string>; body: string } {
    const failure = this.failure(thrown, requestId);
    const problem = toProblem(failure, this.#errorsBase, requestId);
    return {
      status: errorTable[failure.slug].status,
      headers: {
        ...(isPage
          ? { ...unscriptedHeaders, "cache-control": "no-store" }
          : { "content-type": "application/problem+json" }),
        ...(failure.retryAfter !== undefined && { "retry-after": String(failure.retryAfter) }),
        ...(errorTable[failure.slug].status === 401 && { "www-authenticate": schemeFor(failure) }),
      },
      body: isPage ? renderProblem(problem) : `${JSON.stringify(problemJson(problem))}\n`,
    };
  }
}

/** Returns the authentication scheme: HTTP Basic at the token endpoint (RFC 6749, 5.2), else Bearer. */
function schemeFor({ extensions }: Failure): string {
  return extensions.error === "invalid_client" ? 'Basic realm="pilothouse"' : "Bearer";
}

/** Converts a Fastify error about a malformed request to a failure. Returns undefined for other errors. */
function fromFastify(thrown: unknown): Failure | undefined {
  if (!(thrown instanceof Error && "code" in thrown && typeof thrown.code === "string")) return undefined;
  const { code, statusCode, message } = thrown as FastifyError;
  switch (code) {
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return failFields("bad-request", { "Content-Type": "must be application/json" });
    case "FST_ERR_BAD_URL":
      return failFields("bad-request", { path: "is not a valid URL path" });
    case "ECONNRESET":
      // Fastify sets 400 only for a client that disconnected while it sent its body.
      return statusCode === 400 ? failFields("bad-request", { body: "must be complete" }) : undefined;
    default:
      return code.startsWith("FST_ERR_") && statusCode !== undefined && statusCode < 500
        ? failFields("bad-request", { request: message })
        : undefined;
  }
}
