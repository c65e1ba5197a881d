import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { MediaType, OpenApiDocument, Operation, Response } from "../../../gateway/openapi/model.ts";

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** Validates responses against an OpenAPI document. */
export class Described {
  readonly #document: OpenApiDocument;
  readonly #ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    formats: { "date-time": dateTime, int32: true, int64: true, double: true },
  });
  readonly #checks = new Map<unknown, ValidateFunction>();

  constructor(document: OpenApiDocument) {
    this.#document = document;
    this.#ajv.addSchema({ $id: "openapi", ...document });
  }

  /** Returns all differences of a response from the document. */
  faultsOf(operation: Operation, answer: Answered): string[] {
    const response = this.#responseOf(operation, answer.status);
    if (!response) return [`the status ${answer.status} is not described`];
    const missing = Object.keys(response.headers ?? {}).filter(
      (name) => !["Retry-After", "Idempotency-Replayed"].includes(name) && !answer.headers.has(name),
    );
    const type = answer.headers.get("content-type")?.split(";", 1)[0] ?? "";
    const missingHeaders = missing.map((name) => `the header ${name} is missing`);
    const content = response.content?.[type];
    if (!content) {
      const isEmpty = response.content === undefined && type === "" && answer.text === "";
      return [...missingHeaders, ...(isEmpty ? [] : [`the content type ${type} is not described`])];
    }
    return [...missingHeaders, ...this.#bodyFaults(content, type, answer.text)];
  }

  #responseOf({ responses }: Operation, status: number): Response | undefined {
    const response = responses[status];
    return response && "$ref" in response
      ? this.#document.components.responses[response.$ref.replace("#/components/responses/", "")]
      : response;
  }

  #bodyFaults({ schema = {} }: MediaType, type: string, text: string): string[] {
    if (type !== "text/event-stream" && schema.type === "string") return [];
    if (type !== "text/event-stream") return this.#faults(schema, JSON.parse(text));
    const frames = text.split("\n\n").filter((frame) => frame.startsWith("id: ") || frame.startsWith("event: "));
    return frames.flatMap((frame) => {
      const data = JSON.parse(frame.replace(/^.*data: /s, ""));
      const problem = { $ref: "#/components/schemas/Problem" };
      return this.#faults(frame.startsWith("event: error") ? problem : (schema["x-event-data"] ?? {}), data);
    });
  }

  #faults(schema: object, value: unknown): string[] {
    let check = this.#checks.get(schema);
    if (!check) {
      check = this.#ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/')));
      this.#checks.set(schema, check);
    }
    return check(value) ? [] : (check.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
  }
}
