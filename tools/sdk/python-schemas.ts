import type { JsonSchema } from "../../gateway/openapi/model.ts";

type Schemas = Readonly<Record<string, JsonSchema>>;

/** Keyword arguments of a method: fields of requests, without those that it takes by position or sets itself. */
interface Arguments {
  readonly of: string;
  /** Kind of an interaction, whose fields are added. */
  readonly action?: string;
  readonly omit?: readonly string[];
  readonly pick?: readonly string[];
}

const argumentTypes: Readonly<Record<string, Arguments>> = {
  NavigateOptions: { of: "NavigateRequest", omit: ["url"] },
  WaitOptions: { of: "WaitRequest", omit: ["condition"] },
  MarkdownOptions: { of: "ReadRequest", omit: ["offset", "max_bytes"] },
  InteractOptions: { of: "InteractRequest", omit: ["action"] },
  TapOptions: { of: "InteractRequest", action: "Tap", omit: ["selector"] },
  FillOptions: { of: "InteractRequest", action: "Fill", omit: ["selector", "text"] },
  TypeOptions: { of: "InteractRequest", action: "Type", omit: ["text"] },
  PressOptions: { of: "InteractRequest", action: "Key", omit: ["key"] },
  ScrollOptions: { of: "InteractRequest", action: "Scroll" },
  ScreenshotOptions: { of: "CaptureRequest", omit: ["kind", "paper", "landscape", "print_background"] },
  PdfOptions: { of: "CaptureRequest", pick: ["paper", "landscape", "print_background", "page_id", "timeout_ms"] },
  AgentSessionOptions: { of: "CreateAgentSessionRequest", omit: ["session_id"] },
  FetchOptions: { of: "FetchRequest", omit: ["url"] },
};

/** Unions that get a name of their own: schema and property. */
const namedUnions = {
  InteractAction: ["InteractRequest", "action"],
  WaitCondition: ["WaitRequest", "condition"],
} as const;

/** Keywords without a counterpart in Python's types. Formats other than `binary` would make times objects. */
const dropped: ReadonlySet<string> = new Set([
  ...["format", "pattern", "contentEncoding", "minLength", "maxLength", "minimum", "maximum"],
  ...["exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "uniqueItems", "propertyNames", "minProperties"],
  ...["maxProperties", "default", "x-default", "example", "discriminator", "not"],
]);

/** Removes the dropped keywords, and `additionalProperties: false`, at every depth. Names of properties are not keywords. */
function simplify(schema: JsonSchema): JsonSchema {
  const kept = Object.entries(schema).filter(
    ([keyword, value]) => (!dropped.has(keyword) || value === "binary") && typeof value !== "boolean",
  );
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, simplifyValue(keyword, value)]));
}

const isObject = (value: unknown): value is Schemas => typeof value === "object" && value !== null;

function simplifyValue(keyword: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => (isObject(item) ? simplify(item) : item));
  if (!isObject(value)) return value;
  if (keyword !== "properties") return simplify(value);
  return Object.fromEntries(Object.entries(value).map(([name, property]) => [name, simplify(property)]));
}

function find(schemas: Schemas, name: string): JsonSchema {
  const schema = schemas[name];
  if (!schema) throw new Error(`expected the schema ${name} in the document, got none: change tools/sdk`);
  return schema;
}

function argumentSchema(schemas: Schemas, { of, action, omit = [], pick }: Arguments): JsonSchema {
  const parts = [find(schemas, of), ...(action ? [find(schemas, `${of}Action${action}`)] : [])];
  const taken = new Set([...omit, ...(action ? ["action", "kind"] : [])]);
  const fields = parts
    .flatMap(({ properties = {} }) => Object.entries(properties))
    .filter(([name]) => !taken.has(name) && (pick?.includes(name) ?? true));
  const names = fields.map(([name]) => name);
  const required = parts.flatMap((part) => part.required ?? []).filter((name) => names.includes(name));
  return { type: "object", properties: Object.fromEntries(fields), ...(required.length > 0 && { required }) };
}

/** Returns the schema of a fetched page whose base64 is decoded. */
function fetchedPage(schemas: Schemas): JsonSchema {
  const schema = find(schemas, "FetchResult");
  const { screenshot, pdf, ...others } = schema.properties ?? {};
  const bytes = (property?: JsonSchema) => ({ ...property, format: "binary" });
  return { ...schema, properties: { ...others, screenshot: bytes(screenshot), pdf: bytes(pdf) } };
}

/** Returns a problem with its fields in one object: a class cannot narrow a field of the class that it extends. */
function flatProblem(schemas: Schemas, { allOf = [], ...schema }: JsonSchema): JsonSchema {
  const parts = allOf.map((part) => (part.$ref === "#/components/schemas/Problem" ? find(schemas, "Problem") : part));
  const all = [...parts, schema];
  return {
    type: "object",
    ...Object.assign({}, ...all.map(({ description }) => description !== undefined && { description })),
    properties: Object.assign({}, ...all.map(({ properties }) => properties)),
    required: [...new Set(all.flatMap(({ required = [] }) => required))],
  };
}

/** `session.page_opened` -> `SessionPageOpened`. */
const eventName = (type: string) => type.replace(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Returns the schemas from which the types of sdk/python are generated: each type has a name. */
export function describeForPython(schemas: Schemas): Schemas {
  const named: Record<string, JsonSchema> = { ...schemas };
  const add = (name: string, schema: JsonSchema) => {
    if (name in named) throw new Error(`expected no schema ${name} in the document: change tools/sdk`);
    named[name] = schema;
    return { $ref: `#/components/schemas/${name}` };
  };
  for (const [name, [owner, property]] of Object.entries(namedUnions)) {
    const schema = find(named, owner);
    const { description, ...union } = schema.properties?.[property] ?? {};
    const reference = { ...add(name, union), ...(description !== undefined && { description }) };
    named[owner] = { ...schema, properties: { ...schema.properties, [property]: reference } };
  }
  const events = find(schemas, "ServiceEvent").oneOf ?? [];
  const references = events.map((event) => add(eventName(String(event.properties?.type?.const)), event));
  named.ServiceEvent = { oneOf: references };
  for (const [name, schema] of Object.entries(schemas))
    if (/^Problem./.test(name)) named[name] = flatProblem(schemas, schema);
  add("FetchedPage", fetchedPage(schemas));
  for (const [name, fields] of Object.entries(argumentTypes)) add(name, argumentSchema(schemas, fields));
  return Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, simplify(schema)]));
}
