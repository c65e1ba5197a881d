import type { OpenApiDocument, Operation, Parameter, Reference } from "../../../gateway/openapi/model.ts";
import type { Random } from "./random.ts";
import { huge, RandomValues } from "./random-values.ts";

/** Request, with the operation under test. */
export interface RandomRequest {
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

interface Route {
  readonly verb: string;
  readonly template: string;
  readonly operation: Operation;
}

const formType = "application/x-www-form-urlencoded";
const brokenBodies = ["", "{", "[]", "null", '"text"', '{"a":1,}', '{"a":NaN}', "[".repeat(10_000), "\u{feff}{}"];

/** Creates requests to all operations of a document. `urls` are addresses that pages can load. */
export class RandomRequests {
  readonly #random: Random;
  readonly #values: RandomValues;
  readonly #routes: readonly Route[];
  readonly #known: Readonly<Record<string, string>>;

  /** `known` maps collections such as `sessions` to the ID of an existing item. */
  constructor(
    document: OpenApiDocument,
    random: Random,
    known: Readonly<Record<string, string>>,
    urls: readonly string[],
  ) {
    this.#random = random;
    this.#values = new RandomValues(document, random, urls);
    this.#known = known;
    this.#routes = Object.entries(document.paths).flatMap(([template, item]) =>
      Object.entries(item).map(([verb, operation]) => ({ verb: verb.toUpperCase(), template, operation })),
    );
  }

  /**
   * Returns a request to the named operation, or to a random one. With probability `wildness`, each part is replaced by
   * an arbitrary value. By default, half of the requests are nearly valid, so that also successful calls are tested.
   */
  next(operationId?: string, wildness = this.#random.pick([0, 0.02, 0.1, 0.4])): RandomRequest {
    const random = this.#random;
    const routes = this.#routes.filter(
      ({ operation }) => operation.operationId === (operationId ?? operation.operationId),
    );
    const { verb, template, operation } = random.pick(routes);
    const body = this.#body(operation, wildness);
    return {
      operation,
      method: verb,
      path:
        template.replace("{id}", this.#id(verb, template)).replace("{name}", this.#name()) +
        this.#query(operation, wildness),
      headers: this.#headers(operation, body, wildness),
      body,
    };
  }

  #id(verb: string, template: string): string {
    const ids = [
      "ses_",
      "ses_01jd2z5r1v7k9m3q8t4w6x0y2b",
      "%00",
      "%F0%9F%9A%A2",
      "a%2Fb",
      "x".repeat(65),
      "-1",
      "null",
    ];
    const isKept = verb !== "DELETE" && this.#random.chance(0.85);
    const [, , collection = ""] = template.split("/");
    return (isKept && this.#known[collection]) || this.#random.pick(ids);
  }

  #name(): string {
    return this.#random.pick(["report.csv", "report.csv", "%E2%82%AC", "a%2Fb", "%00", "x".repeat(300)]);
  }

  #query({ parameters = [] }: Operation, wildness: number): string {
    const query = new URLSearchParams();
    for (const parameter of parameters) {
      if (isQuery(parameter) && this.#random.chance(0.4)) {
        query.append(parameter.name, asText(this.#values.value(parameter.schema, wildness)));
      }
    }
    if (this.#random.chance(wildness / 2)) query.append(this.#random.pick(["limit", "colour", "__proto__", ""]), "1");
    return query.size > 0 ? `?${query}` : "";
  }

  #body({ requestBody }: Operation, wildness: number): string | undefined {
    if (requestBody?.content["application/octet-stream"]) return this.#random.pick(["", "a,b", "x".repeat(10_000)]);
    const form = requestBody?.content[formType];
    const content = form ?? requestBody?.content["application/json"];
    if (!content) return undefined;
    if (this.#random.chance(wildness / 4)) return this.#random.pick(brokenBodies);
    const value = this.#values.value(content.schema ?? {}, wildness);
    if (form)
      return new URLSearchParams(Object.entries(Object(value)).map(([name, each]) => [name, asText(each)])).toString();
    return JSON.stringify(value)?.replaceAll(JSON.stringify(huge), "1e999");
  }

  #headers({ requestBody }: Operation, body: string | undefined, wildness: number): Record<string, string> {
    const random = this.#random;
    const type = requestBody?.content[formType] ? formType : "application/json";
    const isOdd = random.chance(wildness / 4);
    return {
      ...(body !== undefined && { "content-type": isOdd ? "text/plain" : type }),
      // A short timeout, since most conditions of random waits never become true.
      "x-request-timeout-ms": random.chance(wildness / 4) ? random.pick(["0", "x", "1e9"]) : "1500",
      ...(random.chance(wildness) && { "x-request-id": random.pick(["own", "x".repeat(200), "<>"]) }),
      ...(random.chance(wildness) && { "idempotency-key": random.pick(["a", "b", "x".repeat(255), "x".repeat(256)]) }),
      ...(random.chance(wildness) && { "last-event-id": random.pick(["evt_x", "0", "x".repeat(65)]) }),
    };
  }
}

function isQuery(parameter: Parameter | Reference): parameter is Parameter {
  return "in" in parameter && parameter.in === "query";
}

function asText(value: unknown): string {
  return typeof value === "string" ? value.toWellFormed() : (JSON.stringify(value) ?? "");
}
