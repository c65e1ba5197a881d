import type { JsonSchema, OpenApiDocument } from "../../../gateway/openapi/model.ts";
import type { Random } from "./random.ts";

/** Placeholder for a number that exceeds the range of a double. */
export const huge = "a huge number";

const nested = (levels: number): unknown => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);

/** Values that few fields accept. */
const wild: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  0.5,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  -1e308,
  huge,
  "",
  "0",
  " ",
  "\0",
  "\ud800",
  "‮𝕏\u{10ffff}é\u0301",
  "../../etc/passwd",
  "'; drop table sessions; --",
  "x".repeat(10_000),
  "__proto__",
  [],
  {},
  [[]],
  [null],
  { kind: "constructor" },
  { toString: 1, constructor: { prototype: {} } },
  JSON.parse('{"__proto__": {"polluted": true}}'),
  nested(500),
];

/** Valid values by field name, used in most cases. */
const fitting: Readonly<Record<string, readonly string[]>> = {
  selector: ["#name", "#go", "#country", "body", "#track"],
  key: ["Enter", "a", "Tab"],
  page_id: ["page_1"],
  archetype: ["desktop-chrome", "pixel-7"],
  runtime: ["headless-shell"],
  locale: ["de-AT"],
  timezone: ["Europe/Vienna"],
};

/** Texts with a meaning in some field. */
const texts = [
  "#name",
  "#go",
  "body",
  "*",
  "a[",
  "about:blank",
  "http://127.0.0.1:1/",
  "https://example.invalid/%00?#",
  "data:text/html,x",
  "page_1",
  "page_0",
  "Enter",
  "de-AT",
  "Europe/Vienna",
  "desktop-chrome",
  "pixel-7",
  "**",
  "ß漢字🚢",
];

/** Creates values that a schema allows, or nearly allows. */
export class RandomValues {
  readonly #document: OpenApiDocument;
  readonly #random: Random;
  readonly #fitting: Readonly<Record<string, readonly string[]>>;

  /** `urls` are addresses that sessions can load. */
  constructor(document: OpenApiDocument, random: Random, urls: readonly string[]) {
    this.#document = document;
    this.#random = random;
    this.#fitting = { ...fitting, url: urls };
  }

  /** Returns a value for a schema. With probability `wildness`, each part is replaced by an arbitrary value. */
  value(schema: JsonSchema, wildness: number): unknown {
    const random = this.#random;
    if (random.chance(wildness)) return random.pick(wild);
    const { $ref, oneOf, anyOf } = schema;
    if ($ref !== undefined) return this.value(this.#resolve($ref), wildness);
    const choices = oneOf ?? anyOf;
    if (choices !== undefined) return this.value(random.pick(choices), wildness);
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return random.pick(schema.enum);
    const type = typeof schema.type === "object" ? random.pick(schema.type) : schema.type;
    switch (type) {
      case "object":
        return this.#object(schema, wildness);
      case "array":
        return this.#array(schema, wildness);
      case "integer":
      case "number":
        return this.#number(schema);
      case "boolean":
        return random.chance(0.5);
      case "string":
        return this.#text(schema);
      default:
        return random.pick(wild);
    }
  }

  #resolve(reference: string): JsonSchema {
    const name = reference.replace("#/components/schemas/", "");
    const schema = this.#document.components.schemas[name];
    if (!schema) throw new Error(`the document has no ${reference}`);
    return schema;
  }

  #object({ properties = {}, required = [], additionalProperties }: JsonSchema, wildness: number): unknown {
    const random = this.#random;
    const entries: [string, unknown][] = [];
    for (const [name, schema] of Object.entries(properties)) {
      // Without a timeout, a command may run until the end of the test.
      const wanted = name === "timeout_ms" || required.includes(name) ? 1 - wildness : 0.3;
      if (random.chance(wanted)) entries.push([name, this.#member(name, schema, wildness)]);
    }
    if (typeof additionalProperties === "object") {
      for (let i = random.below(4); i > 0; i--) {
        entries.push([random.pick(texts), this.value(additionalProperties, wildness)]);
      }
    }
    if (random.chance(wildness)) {
      entries.push([random.pick(["__proto__", "constructor", "toString", "", "kind", "id", "\0"]), random.pick(wild)]);
    }
    return Object.fromEntries(entries);
  }

  #member(name: string, schema: JsonSchema, wildness: number): unknown {
    const fit = this.#fitting[name];
    if (name === "timeout_ms") return this.#timeout(wildness);
    return fit && this.#random.chance(0.7) ? this.#random.pick(fit) : this.value(schema, wildness);
  }

  #timeout(wildness: number): unknown {
    return this.#random.chance(wildness) ? this.#random.pick(wild) : this.#random.pick([1, 50, 300, 0, 120_001]);
  }

  #array({ items = {}, minItems = 0, maxItems = 8 }: JsonSchema, wildness: number): unknown {
    const length = this.#random.pick([minItems, 1, 2, Math.min(maxItems, 101), Math.min(maxItems + 1, 102)]);
    return Array.from({ length }, () => this.value(items, wildness));
  }

  #number({ minimum = 0, maximum = 1000, type }: JsonSchema): number {
    const random = this.#random;
    const near = [minimum, minimum + 1, minimum - 1, maximum, maximum + 1, Math.floor((minimum + maximum) / 2)];
    return random.pick(near) + (type === "number" && random.chance(0.3) ? 0.25 : 0);
  }

  #text({ minLength = 0, maxLength = 64 }: JsonSchema): string {
    const random = this.#random;
    if (random.chance(0.7)) return random.pick(texts);
    const length = random.pick([minLength, Math.max(0, minLength - 1), maxLength, maxLength + 1]);
    return random.pick(["x", "é", "漢"]).repeat(Math.min(length, 9_000));
  }
}
