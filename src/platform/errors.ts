/**
 * A failure is thrown with `fail(slug, ...)` anywhere. It becomes a problem (problem.ts) on REST and WebSocket, and a status
 * with google.rpc details on Connect and gRPC.
 */
import { type ErrorSlug, errorTable, extensionsOf } from "./error-table.ts";

type Table = typeof errorTable;

/** What the table says of a slug's extensions. */
type Declared<S extends ErrorSlug> = Table[S] extends { readonly extensions: infer E } ? E : Record<never, never>;

type Value<E> = E extends { readonly values: readonly (infer V)[] }
  ? V
  : E extends { readonly type: "string" }
    ? string
    : E extends { readonly type: "integer" }
      ? number
      : boolean;

type Optional<E> = { [K in keyof E]: E[K] extends { readonly optional: true } ? K : never }[keyof E];

/** The extensions that a failure of a slug takes: others are refused by the compiler. */
type ExtensionsFor<S extends ErrorSlug> = [keyof Declared<S>] extends [never]
  ? Readonly<Record<string, never>>
  : { readonly [K in Exclude<keyof Declared<S>, Optional<Declared<S>>>]: Value<Declared<S>[K]> } & {
      readonly [K in Optional<Declared<S>>]?: Value<Declared<S>[K]>;
    };

/** What may stand beside a problem's standard members. */
export type Extensions = Readonly<Record<string, string | number | boolean>>;

/** One field of a request and what is wrong with it. */
export interface FieldFault {
  readonly field: string;
  readonly message: string;
}

/** What a failure says besides its slug. */
export interface FailureDetails {
  readonly detail?: string;
  readonly errors?: readonly FieldFault[];
  /** Seconds for a Retry-After header. */
  readonly retryAfter?: number;
  /** What was caught; it goes to the log, never to the client. */
  readonly cause?: unknown;
}

/** The one error type that leaves a service. Made by the functions below alone: they hold extensions to the table. */
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

/** Every failure has a `detail`: what was expected, what came, what to do next. That of `internal` is in the table. */
type FailArguments<S extends ErrorSlug> = S extends "internal"
  ? [extensions?: ExtensionsFor<S>, details?: FailureDetails]
  : [extensions: ExtensionsFor<S>, details: FailureDetails & { readonly detail: string }];

/** Makes a failure to throw: `throw fail("profile-in-use", { active_session_id }, { detail })`. */
export function fail<S extends ErrorSlug>(slug: S, ...[extensions, details]: FailArguments<S>): Failure {
  return new Failure(slug, { ...extensions }, details);
}

/** Makes a failure of what was stored or sent of one. What the table does not have of its extensions is dropped. */
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

/** Makes a failure of fields of the request: `throw failFields("bad-request", { url: "does not parse" })`. */
export function failFields(
  slug: "bad-request" | "validation-failed",
  faults: Readonly<Record<string, string>>,
): Failure {
  return failFaults(
    slug,
    Object.entries(faults).map(([field, message]) => ({ field, message })),
  );
}

/** How many faults of a request are listed. */
export const maxFaults = 50;

/** Makes a failure from a list of faults; `detail` names the first. A fault without a field is the whole body's. */
export function failFaults(slug: "bad-request" | "validation-failed", faults: readonly FieldFault[]): Failure {
  const errors = faults.slice(0, maxFaults).map(({ field, message }) => ({ field: field || "body", message }));
  const [first] = errors;
  return new Failure(slug, {}, first ? { errors, detail: `${first.field}: ${first.message}` } : {});
}

/** Turns anything thrown into a failure; what is not one already becomes `internal` and keeps its cause for the log. */
export function asFailure(thrown: unknown): Failure {
  return thrown instanceof Failure ? thrown : new Failure("internal", {}, { cause: thrown });
}
