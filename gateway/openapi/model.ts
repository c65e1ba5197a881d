/** Any value of a JSON document. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON Schema (draft 2020-12), as far as the document uses it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly format?: string;
  readonly enum?: readonly Json[];
  readonly const?: Json;
  readonly default?: Json;
  readonly not?: Schema;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly contentEncoding?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly propertyNames?: Schema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly additionalProperties?: boolean | Schema;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly discriminator?: { readonly propertyName: string; readonly mapping: Readonly<Record<string, string>> };
  /** The shape of each event's `data` in a text/event-stream; OpenAPI 3.1 has no keyword of its own for it. */
  readonly "x-event-data"?: Schema;
  /** The default of a field of a body. Generators of typed clients make a field with `default` required, or send it. */
  readonly "x-default"?: Json;
}

/** A reference to a component. */
export interface Reference {
  readonly $ref: string;
}

/** A parameter in path, query or header. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly description: string;
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: Json;
}

/** One representation of a body. */
export interface MediaType {
  readonly schema?: Schema;
  readonly example?: Json;
  /** In place of one example: one for each kind of thing that the body can say. */
  readonly examples?: Readonly<Record<string, { readonly value: Json }>>;
}

/** A header of a response. */
export interface Header {
  readonly description: string;
  readonly schema: Schema;
}

/** One answer of an operation. */
export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header | Reference>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

/** The body of a request. */
export interface RequestBody {
  readonly required: boolean;
  readonly description?: string;
  readonly content: Readonly<Record<string, MediaType>>;
}

/** What is said of a method whatever way it is called. */
export interface Introduction {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

/** One method of the service, as REST has it. */
export interface Operation extends Introduction {
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: RequestBody;
  readonly responses: Readonly<Record<string, Response | Reference>>;
}

/** One bidirectional method of the service, as WebSockets have it: one JSON message in each frame. */
export interface WebSocketOperation extends Introduction {
  readonly parameters: readonly Parameter[];
  /** The messages that the client sends. */
  readonly client: Schema;
  /** The messages that the server sends. */
  readonly server: Schema;
  readonly example: Json;
}

/** The verbs of a path, in lower case. */
export type PathItem = Readonly<Record<string, Operation>>;

/** A service of the document. */
export interface Tag {
  readonly name: string;
  readonly description: string;
}

/** What the document refers to by name. */
export interface Components {
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly responses: Readonly<Record<string, Response>>;
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly headers: Readonly<Record<string, Header>>;
  readonly securitySchemes: Readonly<Record<string, Json>>;
}

/** An OpenAPI 3.1 document, as far as the service writes it. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description: string;
    readonly license: Json;
  };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly Tag[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly webhooks?: Readonly<Record<string, PathItem>>;
  /** Events that are shown in event streams and delivered to nobody, in the form of webhooks. */
  readonly "x-stream-events"?: Readonly<Record<string, PathItem>>;
  /** The bidirectional methods by path; OpenAPI has no word for WebSockets. */
  readonly "x-websockets"?: Readonly<Record<string, WebSocketOperation>>;
  readonly components: Components;
}

/** The example of a body, or the first of several. */
export function firstExample({ example, examples = {} }: MediaType): Json | undefined {
  return example ?? Object.values(examples)[0]?.value;
}
