/**
 * Failures are thrown with `fail(slug, ...)`. Transports convert them to a problem (problem.ts) on REST and WebSocket,
 * and to a status with google.rpc details on Connect and gRPC.
 */
import { type ErrorSlug, errorTable, extensionsOf } from "./error-table.ts";

type Table = typeof errorTable;

/** Extensions of a slug as declared in the table. */
type Declared<S extends ErrorSlug> = Table[S] extends { readonly extensions: infer E } ? E : Record<never, never>;

type Value<E> = E extends { readonly values: readonly (infer V)[] }
  ? V
  : E extends { readonly type: "string" }
    ? string
    : E extends { readonly type: "integer" }
      ? number
      : boolean;

type Optional<E> = { [K in keyof E]: E[K] extends { readonly optional: true } ? K : never }[keyof E];

/** Extensions that `fail` accepts for a slug, checked by the compiler. */
type ExtensionsFor<S extends ErrorSlug> = [keyof Declared<S>] extends [never]
  ? Readonly<Record<string, never>>
  : { readonly [K in Exclude<keyof Declared<S>, Optional<Declared<S>>>]: Value<Declared<S>[K]> } & {
      readonly [K in Optional<Declared<S>>]?: Value<Declared<S>[K]>;
    };

export type Extensions = Readonly<Record<string, string | number | boolean>>;

/** Error in one request field. */
export interface FieldFault {
  readonly field: string;
  readonly message: string;
}

export interface FailureDetails {
  readonly detail?: string;
  readonly errors?: readonly FieldFault[];
  /** Seconds for the Retry-After header. */
  readonly retryAfter?: number;
  /** Original error, which is logged but never sent to clients. */
  readonly cause?: unknown;
}

/** The only error type that leaves a service. Created by the functions below, which enforce the table. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly slug: ErrorSlug;
  readonly extensions: Extensions;
  readonly detail: string | undefined;
  readonly errors: readonly FieldFault[];
  readonly retryAfter: number | undefined;

  constructor(slug: ErrorSlug, extensions: Extensions = {}, details: FailureDetails = {}) {
    super(details.detail ?? errorTable[slug].title, details.cause === undefined ? undefined : { cause: details.cause });
    this.slug = slug;
    this.extensions = extensions;
    this.detail = details.detail;
    this.errors = details.errors ?? [];
    this.retryAfter = details.retryAfter;
  }
}

/** Arguments of a failure. All slugs except `internal` need a `detail` (expected, received, next step). */
type FailArguments<S extends ErrorSlug> = S extends "internal"
  ? [extensions?: ExtensionsFor<S>, details?: FailureDetails]
  : [extensions: ExtensionsFor<S>, details: FailureDetails & { readonly detail: string }];

/** Creates a failure: `throw fail("profile-in-use", { active_session_id }, { detail })`. */
export function fail<S extends ErrorSlug>(slug: S, ...[extensions, details]: FailArguments<S>): Failure {
  return new Failure(slug, { ...extensions }, details);
}

/** Restores a failure from stored or received data. Drops extensions that the table does not declare. */
export function restoreFailure(
  slug: ErrorSlug,
  extensions: Readonly<Record<string, unknown>>,
  details: FailureDetails,
): Failure {
  const known: Record<string, string | number | boolean> = {};
  for (const [name, { type }] of Object.entries(extensionsOf(slug))) {
    const value = extensions[name];
    const isDeclared = typeof value === (type === "integer" ? "number" : type);
    if (isDeclared && (typeof value === "string" || typeof value === "number" || typeof value === "boolean")) {
      known[name] = value;
    }
  }
  return new Failure(slug, known, details);
}

/** Creates a failure about request fields: `throw failFields("bad-request", { url: "does not parse" })`. */
export function failFields(
  slug: "bad-request" | "validation-failed",
  faults: Readonly<Record<string, string>>,
): Failure {
  return failFaults(
    slug,
    Object.entries(faults).map(([field, message]) => ({ field, message })),
  );
}

/** Maximum number of listed faults. */
export const maxFaults = 50;

/** Creates a failure from a list of faults. `detail` describes the first. A fault without a field concerns the body. */
export function failFaults(slug: "bad-request" | "validation-failed", faults: readonly FieldFault[]): Failure {
  const errors = faults.slice(0, maxFaults).map(({ field, message }) => ({ field: field || "body", message }));
  const [first] = errors;
  return new Failure(slug, {}, first ? { errors, detail: `${first.field}: ${first.message}` } : {});
}

/** Returns a thrown Failure, or wraps any other value in `internal` with its cause. */
export function asFailure(thrown: unknown): Failure {
  return thrown instanceof Failure ? thrown : new Failure("internal", {}, { cause: thrown });
}
