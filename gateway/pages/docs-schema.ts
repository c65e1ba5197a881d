import { type Html, html } from "../../src/platform/html.ts";
import type { Header, JsonSchema, OpenApiDocument, Parameter, Reference, Response } from "../openapi/model.ts";
import { inline, prose } from "./prose.ts";

/** Resolves references of a document. */
export class Resolver {
  readonly #components: OpenApiDocument["components"];

  constructor(document: OpenApiDocument) {
    this.#components = document.components;
  }

  /** Resolves a schema. Keywords next to `$ref` override those of the referenced schema. */
  schema(schema: JsonSchema): JsonSchema {
    const { $ref, ...beside } = schema;
    return $ref === undefined ? schema : { ...this.#components.schemas[lastPart($ref)], ...beside };
  }

  parameter(parameter: Parameter | Reference): Parameter {
    return "$ref" in parameter ? found(this.#components.parameters, parameter) : parameter;
  }

  response(response: Response | Reference): Response {
    return "$ref" in response ? found(this.#components.responses, response) : response;
  }
}

function found<T>(components: Readonly<Record<string, T>>, { $ref }: Reference): T {
  const component = components[lastPart($ref)];
  if (component === undefined) throw new Error(`${$ref} is not in the document`);
  return component;
}

/** Returns the part of a reference or URI after its last slash. */
export function lastPart(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}

/** Renders parameters as a table. */
export function parameterTable(parameters: readonly Parameter[], resolver: Resolver): Html {
  return html`<table>${parameters.map(({ name, description, in: where, required = false, schema }) =>
    row(name, { ...schema, description }, resolver, { where, required, seen: [] }),
  )}</table>`;
}

/** Renders headers as a table, each with an anchor `header-<key>`. */
export function headerTable(headers: Readonly<Record<string, Header | Parameter>>, resolver: Resolver): Html {
  return html`<table>${Object.entries(headers).map(([key, header]) => {
    const name = "name" in header ? header.name : key;
    const { description, schema } = header;
    return row(name, { ...schema, description }, resolver, { id: `header-${key}`, required: false, seen: [] });
  })}</table>`;
}

/**
 * Renders the fields of an object as a table with collapsible nested objects. `seen` contains the enclosing schemas, to
 * end the recursion.
 */
export function fieldTable(schema: JsonSchema, resolver: Resolver, seen: readonly JsonSchema[] = []): Html {
  const { properties = {}, required = [] } = resolver.schema(schema);
  return html`<table>${Object.entries(properties).map(([name, property]) =>
    row(name, property, resolver, { required: required.includes(name), seen }),
  )}</table>`;
}

interface RowOptions {
  readonly id?: string;
  readonly where?: string;
  readonly required: boolean;
  readonly seen: readonly JsonSchema[];
}

function row(name: string, property: JsonSchema, resolver: Resolver, { id, where, required, seen }: RowOptions): Html {
  const schema = withoutNull(property, resolver);
  const { description } = property;
  const rules = rulesOf(schema);
  const within = inside(schema, resolver, seen);
  return html`<tr${id && html` id="${id}"`}>
<th scope="row"><code>${name}</code> ${required && html`<span class="needed">required</span>`}
<span class="type">${where && `${where}, `}${typeOf(property, resolver)}</span></th>
<td>${description !== undefined && prose(description)}
${rules !== "" && html`<p class="rule">${inline(rules)}</p>`}</td>
</tr>${within && html`<tr class="inside"><td colspan="2">${within}</td></tr>`}`;
}

function withoutNull(property: JsonSchema, resolver: Resolver): JsonSchema {
  const { anyOf, ...beside } = property;
  const other = anyOf?.find((schema) => schema.type !== "null");
  return resolver.schema(other ? { ...other, ...beside } : property);
}

function inside(schema: JsonSchema, resolver: Resolver, seen: readonly JsonSchema[]): Html | undefined {
  const { oneOf } = schema;
  if (oneOf) {
    return html`<div class="kinds">${oneOf.map((kind) => {
      const { properties, description = "" } = resolver.schema(kind);
      const summary = html`<summary><code>${String(properties?.kind?.const ?? "")}</code> <span>${inline(description.split("\n")[0] ?? "")}</span></summary>`;
      return html`<details>${summary}${fieldTable(kind, resolver, [...seen, schema])}</details>`;
    })}</div>`;
  }
  const object = resolver.schema(schema.items ?? schema);
  const { properties } = object;
  return properties === undefined ||
    Object.keys(properties).length === 0 ||
    seen.some((other) => other.properties === properties)
    ? undefined
    : html`<details><summary>Fields</summary>${fieldTable(object, resolver, [...seen, object])}</details>`;
}

function typeOf(property: JsonSchema, resolver: Resolver): string {
  const nullable = property.anyOf !== undefined || Array.isArray(property.type);
  const name = nameOf(withoutNull(property, resolver), resolver);
  return nullable ? `${name} or null` : name;
}

function nameOf(schema: JsonSchema, resolver: Resolver): string {
  const { type, additionalProperties, items, oneOf, contentEncoding, format } = schema;
  if (oneOf) return "one of several kinds";
  if (items) return `array of ${pluralOf(typeOf(items, resolver))}`;
  if (typeof additionalProperties === "object") return `object of ${pluralOf(typeOf(additionalProperties, resolver))}`;
  const plain = typeof type === "string" ? type : (type?.[0] ?? "string");
  return contentEncoding ?? (format === "date-time" ? "time" : plain);
}

const pluralOf = (name: string): string => (name.endsWith("s") ? name : `${name}s`);

/** Describes the constraints of a schema in words. */
function rulesOf(schema: JsonSchema): string {
  const { minLength, maxLength, minItems, maxItems, minProperties, maxProperties, pattern, uniqueItems } = schema;
  const { minimum, maximum, description = "" } = schema;
  const isWhole = minimum === 0 && (maximum === 2 ** 32 - 1 || maximum === Number.MAX_SAFE_INTEGER);
  // The description of an enum from the protos already explains its values.
  const values = schema.enum?.filter((value) => !description.includes(`\`${value}\``)) ?? [];
  return [
    schema.const !== undefined && `Always \`${schema.const}\`.`,
    values.length > 0 && `One of ${schema.enum?.map((value) => `\`${value}\``).join(", ")}.`,
    range(minLength, maxLength, "characters"),
    range(minItems, maxItems, "items"),
    range(minProperties, maxProperties, "entries"),
    !isWhole && range(minimum, maximum, ""),
    uniqueItems && "No item twice.",
    pattern !== undefined && `Matches \`${pattern}\`.`,
  ]
    .filter((rule) => typeof rule === "string" && rule !== "")
    .join(" ");
}

function range(min: number | undefined, max: number | undefined, unit: string): string {
  const [low, high] = [min, max].map((value) => value?.toLocaleString("en-US"));
  if (low === undefined && high === undefined) return "";
  const text = low === undefined ? `At most ${high}` : high === undefined ? `At least ${low}` : `${low} to ${high}`;
  return `${text} ${unit}`.trim().concat(".");
}
