/**
 * JSON Schemas of messages in their REST JSON (src/platform/rest-json). A message has two schemas: as part of a
 * request, with rules and without unknown fields; and as part of a response.
 */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { field as fieldRules, message as messageRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { ProblemSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { default_value, nullable } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { enumNames, isWritable, onlyOneof } from "../../src/platform/rest-json/field-names.ts";
import { fieldOfRule } from "../../src/platform/rule-messages.ts";
import type { Comments } from "./comments.ts";
import { constraintsOf } from "./constraints.ts";
import { readOption } from "./examples.ts";
import type { JsonSchema, Reference } from "./model.ts";
import { pascalCase } from "./operation-names.ts";
import { requiredMembers, writtenMembers } from "./presence.ts";
import type { RequestUses } from "./request-uses.ts";

type Direction = "request" | "response";

const nothing: ReadonlySet<string> = new Set();

/** Collects the schemas of messages and enums by name, and returns references to them. */
export class SchemaCatalogue {
  readonly #comments: Comments;
  readonly #uses: RequestUses;
  readonly #schemas = new Map<string, JsonSchema>();
  /** Owner of each name, to detect two schemas with the same name. */
  readonly #owners = new Map<string, string>();

  constructor(comments: Comments, uses: RequestUses) {
    this.#comments = comments;
    this.#uses = uses;
  }

  /** Schemas added so far, in alphabetical order. */
  get schemas(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Adds a schema that has no descriptor, and returns a reference. */
  add(name: string, schema: JsonSchema): Reference {
    return this.#once(name, "no descriptor", () => schema);
  }

  /** Returns a reference to the schema of a request message, which omits the fields that the path sets. */
  request(desc: DescMessage): Reference {
    return this.#once(nameOf(desc, "request"), `request ${desc.typeName}`, () => this.#object(desc, "request"));
  }

  /** Returns a reference to the schema of a response message. */
  response(desc: DescMessage): Reference {
    const make = (): JsonSchema => {
      const schema = this.#object(desc, "response");
      return desc.typeName === ProblemSchema.typeName ? problemSchema(schema) : schema;
    };
    return this.#once(nameOf(desc, "response"), `response ${desc.typeName}`, make);
  }

  /** Returns the schema of a response message inline, without a name. */
  inline(desc: DescMessage): JsonSchema {
    return this.#object(desc, "response");
  }

  /** Returns the schema of a path or query parameter, without its description. */
  parameter(field: DescField): JsonSchema {
    const { description: _, "x-default": standard, ...schema } = this.#member(field, "request", false);
    return { ...schema, ...(standard !== undefined && { default: standard }) };
  }

  /** Returns the description of a message from its comment and rules. */
  description(desc: DescMessage): string {
    const rules = getOption(desc, messageRules).cel.map(({ id, message }) => {
      const blamed = fieldOfRule(id, desc);
      return `Rule: ${blamed ? `${blamed.name} ` : ""}${message}.`;
    });
    return [this.#comments(desc.typeName), ...rules].join("\n\n");
  }

  #once(name: string, owner: string, make: () => JsonSchema): Reference {
    const known = this.#owners.get(name);
    if (known === undefined) {
      this.#owners.set(name, owner);
      // Reserves the name, so that a recursive message refers to its own schema.
      this.#schemas.set(name, {});
      this.#schemas.set(name, make());
    } else if (known !== owner) {
      throw new Error(`two schemas are called ${name}: ${known} and ${owner}`);
    }
    return refer(name);
  }

  #object(desc: DescMessage, direction: Direction): JsonSchema {
    const whole = onlyOneof(desc);
    if (whole) return { description: this.description(desc), ...this.#oneof(whole, direction) };
    const { inPath = nothing, clearable = nothing } =
      direction === "request" ? (this.#uses.get(desc.typeName) ?? {}) : {};
    const members = desc.members.filter((member) => isWritable(member) && !inPath.has(member.name));
    const always = direction === "request" ? requiredMembers(desc) : writtenMembers(desc);
    const required = members.map((member) => member.name).filter((name) => always.has(name));
    return {
      type: "object",
      description: this.description(desc),
      properties: Object.fromEntries(
        members.map((member) => [member.name, this.#member(member, direction, clearable.has(member.name))] as const),
      ),
      ...(required.length > 0 && { required }),
      ...(direction === "request" && { additionalProperties: false, ...oneofKeywords(desc) }),
    };
  }

  #member(member: DescField | DescOneof, direction: Direction, isClearable: boolean): JsonSchema {
    const description = this.#comments(`${member.parent.typeName}.${member.name}`);
    if (member.kind === "oneof") return { description, ...this.#oneof(member, direction) };
    const value = this.#value(member, direction);
    const isNullable = direction === "response" ? getOption(member, nullable) : isClearable;
    const text = direction === "request" ? getOption(member, default_value) : "";
    return {
      description,
      ...(isNullable ? orNull(value) : value),
      ...(text !== "" && { "x-default": readOption(member, text) }),
    };
  }

  #oneof(oneof: DescOneof, direction: Direction): JsonSchema {
    const kinds = oneof.fields.map((field) => {
      const name = `${nameOf(oneof.parent, direction)}${pascalCase(oneof.name)}${pascalCase(field.name)}`;
      return [field.name, this.#once(name, `${direction} ${field}`, () => this.#kind(field, direction))] as const;
    });
    return {
      oneOf: kinds.map(([, reference]) => reference),
      discriminator: {
        propertyName: "kind",
        mapping: Object.fromEntries(kinds.map(([kind, { $ref }]) => [kind, $ref])),
      },
    };
  }

  /** Returns the schema of a oneof alternative: `kind` and the fields of its message. */
  #kind(field: DescField, direction: Direction): JsonSchema {
    if (!field.message) throw new Error(`${field}: a oneof's member must be a message`);
    const { properties, required, ...rest } = this.#object(field.message, direction);
    return {
      ...rest,
      properties: { kind: { type: "string", const: field.name }, ...properties },
      required: ["kind", ...(required ?? [])],
    };
  }

  #value(field: DescField, direction: Direction): JsonSchema {
    const single = this.#single(field, direction);
    const constraints = direction === "request" ? constraintsOf(getOption(field, fieldRules)) : {};
    switch (field.fieldKind) {
      case "list":
        return { type: "array", ...constraints, items: { ...single, ...constraints.items } };
      case "map": {
        const { additionalProperties: values } = constraints;
        return {
          type: "object",
          ...constraints,
          additionalProperties: { ...single, ...(typeof values === "object" && values) },
        };
      }
      default:
        return { ...single, ...constraints };
    }
  }

  #single(field: DescField, direction: Direction): JsonSchema {
    if (field.message) {
      switch (field.message.typeName) {
        case "google.protobuf.Timestamp":
          return { type: "string", format: "date-time" };
        case "google.protobuf.Struct":
          return { type: "object" };
        default:
          return direction === "request" ? this.request(field.message) : this.response(field.message);
      }
    }
    return field.enum ? this.#enum(field.enum) : scalarSchema(field.scalar ?? ScalarType.STRING);
  }

  #enum(desc: DescEnum): Reference {
    const names = enumNames(desc);
    const lines = desc.values
      .filter((value) => names.has(value.number))
      .map((value) => `- \`${names.get(value.number)}\`: ${this.#comments(`${desc.typeName}.${value.name}`)}`);
    return this.#once(desc.name, desc.typeName, () => ({
      type: "string",
      description: `${this.#comments(desc.typeName)}\n\n${lines.join("\n")}`,
      enum: [...names.values()],
    }));
  }
}

/**
 * Returns the schema of a problem without `extensions`, whose entries are members of the problem document itself
 * (rest-json/writer.ts). Nearly all of them depend on the problem type.
 */
function problemSchema(whole: JsonSchema): JsonSchema {
  const { extensions: _, ...properties } = whole.properties ?? {};
  return {
    type: "object",
    description: "A problem document (RFC 9457): the body of every error. Other members depend on its `type`.",
    properties,
    required: ["type", "title", "status"],
  };
}

/**
 * Returns the name of a message's schema. Avoids names that client generators use: types called
 * `<operationId>Response`, and variables named after a schema, which may clash with a field of the schema.
 */
function nameOf({ name, field }: DescMessage, direction: Direction): string {
  if (direction === "request") return name.endsWith("Request") ? name : `${name}Input`;
  if (field[name.toLowerCase()]) return `Service${name}`;
  if (!name.endsWith("Response")) return name;
  const item = field.nextCursor && field.data?.message;
  return item ? `${item.name}List` : name.replace(/Response$/, "Result");
}

function refer(name: string): Reference {
  return { $ref: `#/components/schemas/${name}` };
}

function orNull(schema: JsonSchema): JsonSchema {
  return typeof schema.type === "string" && !schema.enum
    ? { ...schema, type: [schema.type, "null"] }
    : { anyOf: [schema, { type: "null" }] };
}

/** Returns the keywords of a (buf.validate.message).oneof: at most one field, or exactly one, may be present. */
function oneofKeywords(desc: DescMessage): JsonSchema {
  const allOf = getOption(desc, messageRules).oneof.map(({ fields, required }): JsonSchema => {
    const one = fields.map((field): JsonSchema => ({ required: [field] }));
    return { oneOf: required ? one : [...one, { not: { anyOf: one } }] };
  });
  return allOf.length === 0 ? {} : { allOf };
}

function scalarSchema(scalar: ScalarType): JsonSchema {
  switch (scalar) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { type: "number", format: "double" };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: "integer", format: "int32", minimum: 0 };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { type: "integer", format: "int64", minimum: 0 };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: "integer", format: "int32" };
    default:
      return { type: "integer", format: "int64" };
  }
}
