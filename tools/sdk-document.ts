// Writes the part of the OpenAPI document from which the types of an SDK are generated: schemas that its API reaches, the
// problems, and a union of all events. Arguments: `typescript` or `python`, and the path of the file to write.
import { writeFileSync } from "node:fs";
import type { JsonSchema, OpenApiDocument, PathItem } from "../gateway/openapi/model.ts";
import { archetypes } from "../src/platform/browsers/archetypes.ts";
import { builtServices, describeServices } from "./described-services.ts";
import { describeForPython } from "./sdk/python-schemas.ts";

/** Paths whose requests and responses the SDKs have methods for. */
const covered = /^\/v1\/(?:sessions|agent-sessions|fetch)(?:$|\/)/;

const archetypeNames = archetypes.map(({ name }) => name);

const reference = /"#\/components\/schemas\/([^"]+)"/g;

/** Returns the schema of an event, with a literal `type`. */
function eventSchema(type: string, item: PathItem): JsonSchema {
  const body = Object.values(item)[0]?.requestBody?.content["application/json"]?.schema;
  const data = body?.properties?.data ?? { type: "object" };
  return {
    type: "object",
    required: ["type", "created_at", "data"],
    properties: {
      id: { type: "string", description: "Identifier. Absent on events that a stream does not repeat." },
      type: { const: type },
      created_at: { type: "string", format: "date-time" },
      data,
    },
  };
}

/** Returns the names of all schemas that a part of a document refers to, directly or through other schemas. */
function reach(part: unknown, schemas: Readonly<Record<string, JsonSchema>>, names = new Set<string>()): Set<string> {
  for (const [, name = ""] of JSON.stringify(part).matchAll(reference)) {
    if (names.has(name)) continue;
    names.add(name);
    reach(schemas[name] ?? {}, schemas, names);
  }
  return names;
}

/** Requests that choose an archetype. */
const archetypeRequests = ["CreateSessionRequest", "CreateAgentSessionRequest", "FetchRequest"];

/** Returns schemas whose requests list the known archetypes. The API accepts other spellings, so other texts are allowed. */
function nameArchetypes(schemas: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const description = "Emulated device and browser.";
  const named: Record<string, JsonSchema> = { ArchetypeName: { type: "string", description, enum: archetypeNames } };
  const anyOf = [{ $ref: "#/components/schemas/ArchetypeName" }, { type: "string" }];
  for (const name of archetypeRequests) {
    const schema = schemas[name];
    const archetype = schema?.properties?.archetype;
    if (!archetype) throw new Error(`expected ${name} to have an archetype: change tools/sdk-document.ts`);
    const about = archetype.description ?? description;
    named[name] = { ...schema, properties: { ...schema.properties, archetype: { description: about, anyOf } } };
  }
  return { ...schemas, ...named };
}

/** Returns a document without operations. They would make most of the package, and the SDK writes their paths itself. */
function reduce({ openapi, info, paths, components, ...document }: OpenApiDocument, isPython: boolean): object {
  const events = { ...document.webhooks, ...document["x-stream-events"] };
  const union: JsonSchema = { oneOf: Object.entries(events).map(([type, item]) => eventSchema(type, item)) };
  const operations = Object.entries(paths).filter(([path]) => covered.test(path));
  const problems = Object.keys(components.schemas).filter((name) => name.startsWith("Problem"));
  const names = reach([operations, union, problems.map((name) => `#/components/schemas/${name}`)], components.schemas);
  const reached = Object.entries(components.schemas).filter(([name]) => names.has(name));
  const schemas = nameArchetypes({ ...Object.fromEntries(reached), ServiceEvent: union });
  return { openapi, info, paths: {}, components: { schemas: isPython ? describeForPython(schemas) : schemas } };
}

const [, , language, path = ""] = process.argv;
writeFileSync(path, JSON.stringify(reduce(describeServices(builtServices), language === "python")));
