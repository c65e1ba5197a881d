import { ProblemSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import {
  type ErrorSlug,
  type Extension,
  errorTable,
  extensionsOf,
  isErrorSlug,
} from "../../src/platform/error-table.ts";
import { policiesOf } from "../policies/index.ts";
import { commonHeaders, referToHeader } from "./headers.ts";
import type { SchemaCatalogue } from "./json-schema.ts";
import type { Json, JsonSchema, MediaType, Reference, Response } from "./model.ts";
import { pascalCase } from "./operation-names.ts";

/**
 * Returns the problems that requests to a method can result in: of the method, of its policies and of the transports.
 */
export function problemsOf(served: ServedMethod): ErrorSlug[] {
  // Raised by transports: a malformed request, X-Request-Timeout-Ms, and unexpected errors.
  const slugs = new Set<ErrorSlug>(["bad-request", "session-timeout", "internal"]);
  for (const policy of policiesOf(served)) {
    for (const slug of policy.problems(served)) slugs.add(slug);
  }
  for (const slug of served.rules.errors) {
    if (!isErrorSlug(slug)) throw new Error(`${served.method}: ${slug} is not in the error table`);
    slugs.add(slug);
  }
  return [...slugs];
}

/** Collects the problem responses of the document, one for each set of problems with the same status. */
export class ProblemCatalogue {
  readonly #schemas: SchemaCatalogue;
  readonly #errorsBase: string;
  readonly #responses = new Map<string, Response>();

  constructor(schemas: SchemaCatalogue, errorsBase: string) {
    this.#schemas = schemas;
    this.#errorsBase = errorsBase;
    schemas.response(ProblemSchema);
  }

  /** Problem responses added so far, ordered by status. */
  get responses(): Record<string, Response> {
    return Object.fromEntries([...this.#responses].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Returns references to the responses of problems, by status. Adds missing responses. */
  refer(slugs: readonly ErrorSlug[]): Record<string, Reference> {
    const byStatus = Map.groupBy(slugs, (slug) => errorTable[slug].status);
    return Object.fromEntries(
      [...byStatus].map(([status, group]) => {
        const name = [status, ...group.toSorted()].join(".");
        if (!this.#responses.has(name)) this.#responses.set(name, this.#response(status, group.toSorted()));
        return [status, { $ref: `#/components/responses/${name}` }] as const;
      }),
    );
  }

  #response(status: number, slugs: readonly ErrorSlug[]): Response {
    const retries = status === 429 || status === 500 || status === 503;
    const body: MediaType = { schema: this.#schema(slugs), ...(slugs[0] && { example: this.#example(slugs[0]) }) };
    return {
      description: slugs.map((slug) => `\`${slug}\`: ${errorTable[slug].about}`).join("\n\n"),
      headers: {
        ...commonHeaders,
        ...(retries && { "Retry-After": referToHeader("Retry-After") }),
      },
      content: { "application/problem+json": body },
    };
  }

  #schema(slugs: readonly ErrorSlug[]): JsonSchema {
    const references = slugs.map((slug) => [this.#typeOf(slug), this.#problem(slug)] as const);
    const [[, only] = []] = references;
    return references.length === 1 && only
      ? only
      : {
          oneOf: references.map(([, reference]) => reference),
          discriminator: {
            propertyName: "type",
            mapping: Object.fromEntries(references.map(([type, { $ref }]) => [type, $ref])),
          },
        };
  }

  #problem(slug: ErrorSlug): Reference {
    const { status, about } = errorTable[slug];
    const extensions = Object.entries(extensionsOf(slug));
    return this.#schemas.add(`Problem${pascalCase(slug)}`, {
      description: about,
      allOf: [{ $ref: "#/components/schemas/Problem" }],
      type: "object",
      properties: {
        type: { type: "string", const: this.#typeOf(slug) },
        status: { type: "integer", const: status },
        ...Object.fromEntries(extensions.map(([name, extension]) => [name, extensionSchema(extension)])),
      },
      required: ["type", "status", ...extensions.flatMap(([name, { optional }]) => (optional ? [] : [name]))],
    });
  }

  #example(slug: ErrorSlug): Readonly<Record<string, Json>> {
    const { status, title } = errorTable[slug];
    const extensions = Object.entries(extensionsOf(slug)).filter(([, { optional }]) => !optional);
    return {
      type: this.#typeOf(slug),
      title,
      status,
      instance: "req_01jd2z5r1v7k9m3q8t4w6x0y2b",
      ...Object.fromEntries(extensions.map(([name, extension]) => [name, extensionExample(extension)])),
    };
  }

  #typeOf(slug: ErrorSlug): string {
    return `${this.#errorsBase}/${slug}`;
  }
}

function extensionExample({ type, format, values: [first] = [] }: Extension): Json {
  if (first !== undefined) return first;
  return type === "string" ? (format ? "2026-01-31T12:00:00.000Z" : "text") : type === "integer" ? 1 : true;
}

function extensionSchema({ type, format, values, about }: Extension): JsonSchema {
  // openapi-generator's Java code for an enum of booleans does not compile.
  const isEnum = values !== undefined && type !== "boolean";
  return { type, description: about, ...(format && { format }), ...(isEnum && { enum: values }) };
}
