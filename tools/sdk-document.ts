// Writes the part of the OpenAPI document from which the types of sdk/typescript are generated: schemas that its API
// reaches, the problems, and a union of all events. Argument: path of the file to write.
import { writeFileSync } from "node:fs";
import type { JsonSchema, OpenApiDocument, PathItem } from "../gateway/openapi/model.ts";
import { builtServices, describeServices } from "./described-services.ts";

/** Paths whose requests and responses the SDK has methods for. */
const covered = /^\/v1\/(?:sessions|agent-sessions)(?:$|\/)/;

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

/** Returns a document without operations. They would make most of the package, and the SDK writes their paths itself. */
function reduce({ openapi, info, paths, components, ...document }: OpenApiDocument): object {
  const events = { ...document.webhooks, ...document["x-stream-events"] };
  const union: JsonSchema = { oneOf: Object.entries(events).map(([type, item]) => eventSchema(type, item)) };
  const operations = Object.entries(paths).filter(([path]) => covered.test(path));
  const problems = Object.keys(components.schemas).filter((name) => name.startsWith("Problem"));
  const names = reach([operations, union, problems.map((name) => `#/components/schemas/${name}`)], components.schemas);
  const schemas = Object.entries(components.schemas).filter(([name]) => names.has(name));
  return { openapi, info, paths: {}, components: { schemas: { ...Object.fromEntries(schemas), ServiceEvent: union } } };
}

const [, , path = ""] = process.argv;
writeFileSync(path, JSON.stringify(reduce(describeServices(builtServices))));
