import type { components, FieldFault, Problem } from "./gen/schema.ts";

type Schemas = components["schemas"];
type TypeOf<S> = S extends { type: `${string}/errors/${infer Slug}` } ? Slug : never;

/** Last part of the type of a problem, such as `rate-limited`. A newer service may send others. */
export type ErrorSlug = { [Name in keyof Schemas]: TypeOf<Schemas[Name]> }[keyof Schemas];

/** Problem document of a slug, with its extensions. */
export type ProblemOf<Slug extends ErrorSlug> = Problem &
  Omit<Extract<Schemas[keyof Schemas], { type: `http://localhost:8080/errors/${Slug}` }>, "type">;

/** Content of an error response. */
export interface ErrorResponse {
  readonly status: number;
  readonly problem: Problem;
  readonly requestId: string | undefined;
  readonly headers: Headers;
}

/** Base class of the errors that the SDK throws, other than TypeErrors for wrong arguments. */
export class PilothouseError extends Error {
  override readonly name: string = "PilothouseError";
}

/** Thrown for an error response of the service. Compare `slug`, not `status`. */
export class PilothouseResponseError extends PilothouseError {
  override readonly name = "PilothouseResponseError";
  /** Last part of the problem's type. `internal` if the response was not a problem document. */
  readonly slug: ErrorSlug | (string & {});
  readonly status: number;
  /** Identifier of the request, for reports to the operator of the service. */
  readonly requestId: string | undefined;
  /** Sentence of the service about this error: the expected value, the received one and the next step. */
  readonly detail: string | undefined;
  /** Faults of request fields. Empty if the error concerns no field. */
  readonly errors: readonly FieldFault[];
  /** The whole problem document, with the extensions of its slug. */
  readonly problem: Problem;
  readonly headers: Headers;
  /** Seconds after which the service allows a repetition. Undefined if the response names no time. */
  readonly retryAfter: number | undefined;

  constructor({ status, problem, requestId, headers }: ErrorResponse) {
    super(`${status} ${problem.title}${problem.detail ? `: ${problem.detail}` : ""}`);
    this.slug = slugOf(problem);
    this.status = status;
    this.requestId = requestId;
    this.detail = problem.detail;
    this.errors = problem.errors ?? [];
    this.problem = problem;
    this.headers = headers;
    this.retryAfter = retryAfterOf(headers, problem);
  }

  /** Returns whether the error has a slug. If so, the compiler knows the extensions in `problem`. */
  is<Slug extends ErrorSlug>(slug: Slug): this is PilothouseResponseError & { readonly problem: ProblemOf<Slug> } {
    return this.slug === slug;
  }
}

/** Thrown if no complete response was received, such as after a reset connection. `cause` is the original error. */
export class PilothouseConnectionError extends PilothouseError {
  override readonly name = "PilothouseConnectionError";
}

/** Thrown if a call, including its retries, did not finish within its `timeoutMs`. */
export class PilothouseTimeoutError extends PilothouseError {
  override readonly name = "PilothouseTimeoutError";
}

/** Returns the last part of a problem's type. */
export function slugOf({ type }: Problem): string {
  const [, slug] = /\/errors\/([\w-]+)$/.exec(type) ?? [];
  return slug ?? "internal";
}

/** Reads the seconds of Retry-After, which may be a date. Problems of a stream have no headers. */
function retryAfterOf(headers: Headers, problem: Problem): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) {
    const seconds: unknown = Reflect.get(problem, "retry_after_seconds");
    return typeof seconds === "number" ? seconds : undefined;
  }
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** Creates the error of a response, from its problem document if it has one. */
export async function readError(response: Response): Promise<PilothouseResponseError> {
  const { status, headers } = response;
  const text = await response.text();
  const requestId = headers.get("x-request-id") ?? undefined;
  return new PilothouseResponseError({ status, headers, requestId, problem: parseProblem(text, response) });
}

function parseProblem(text: string, { status, statusText }: Response): Problem {
  const fallback: Problem = { type: "about:blank", title: statusText || "Unexpected response", status };
  try {
    const parsed: Partial<Problem> | null = JSON.parse(text);
    return typeof parsed?.type === "string" ? { ...fallback, ...parsed } : fallback;
  } catch {
    // A proxy in front of the service answered.
    return fallback;
  }
}
