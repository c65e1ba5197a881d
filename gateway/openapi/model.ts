export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON Schema (draft 2020-12), limited to the keywords that the document uses. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly format?: string;
  readonly enum?: readonly Json[];
  readonly const?: Json;
  readonly default?: Json;
  readonly not?: JsonSchema;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly contentEncoding?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly propertyNames?: JsonSchema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly discriminator?: { readonly propertyName: string; readonly mapping: Readonly<Record<string, string>> };
  /** Schema of the `data` of events in a text/event-stream, for which OpenAPI 3.1 has no keyword. */
  readonly "x-event-data"?: JsonSchema;
  /** Default of a body field. Not `default`, because client generators then make the field required, or send it. */
  readonly "x-default"?: Json;
}

/** A reference to a component. */
export interface Reference {
  readonly $ref: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly description: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
  readonly example?: Json;
}

/** One representation of a body. */
export interface MediaType {
  readonly schema?: JsonSchema;
  readonly example?: Json;
  /** One example for each kind of body, in place of `example`. */
  readonly examples?: Readonly<Record<string, { readonly value: Json }>>;
}

/** A header of a response. */
export interface Header {
  readonly description: string;
  readonly schema: JsonSchema;
}

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header | Reference>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export interface RequestBody {
  readonly required: boolean;
  readonly description?: string;
  readonly content: Readonly<Record<string, MediaType>>;
}

/** Description of a method, independent of the transport. */
export interface Introduction {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

/** A method as a REST operation. */
export interface Operation extends Introduction {
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: RequestBody;
  readonly responses: Readonly<Record<string, Response | Reference>>;
}

/** A bidirectional method as a WebSocket: one JSON message per frame. */
export interface WebSocketOperation extends Introduction {
  readonly parameters: readonly Parameter[];
  /** Messages sent by the client. */
  readonly client: JsonSchema;
  /** Messages sent by the server. */
  readonly server: JsonSchema;
  readonly example: Json;
}

/** Operations of a path by verb, in lower case. */
export type PathItem = Readonly<Record<string, Operation>>;

/** A service of the document. */
export interface Tag {
  readonly name: string;
  readonly description: string;
}

/** Components of the document, by name. */
export interface Components {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly responses: Readonly<Record<string, Response>>;
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly headers: Readonly<Record<string, Header>>;
  readonly securitySchemes: Readonly<Record<string, Json>>;
}

/** An OpenAPI 3.1 document, limited to the members that the service writes. */
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
  /** Events of event streams that are not delivered to webhooks. They are described as webhooks are. */
  readonly "x-stream-events"?: Readonly<Record<string, PathItem>>;
  /** Bidirectional methods by path, since OpenAPI cannot describe WebSockets. */
  readonly "x-websockets"?: Readonly<Record<string, WebSocketOperation>>;
  readonly components: Components;
}

/** Returns the example of a body, or the first of several. */
export function firstExample({ example, examples = {} }: MediaType): Json | undefined {
  return example ?? Object.values(examples)[0]?.value;
}
