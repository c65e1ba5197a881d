import type { JsonObject } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { findOutputFault, findSchemaFault } from "../../../src/agents/turns/output-schema.ts";

/** A schema nested `depth` times. */
const nested = (depth: number): JsonObject =>
  depth === 0 ? { type: "string" } : { type: "object", properties: { a: nested(depth - 1) } };

test.each([
  ["of a list", { type: "array" }, 'must be of type "object"'],
  ["of unknown type", { type: "object", properties: { a: { type: "text" } } }, "is not valid JSON Schema: "],
  [
    "with a pattern",
    { type: "object", properties: { a: { pattern: "(a+)+$" } } },
    'has the keyword "pattern": use only type, enum, ',
  ],
  ["with a reference", { type: "object", items: { anyOf: [{ $ref: "http://a.test/" }] } }, 'has the keyword "$ref"'],
  [
    "with equal items",
    { type: "object", additionalProperties: { uniqueItems: true } },
    'has the keyword "uniqueItems"',
  ],
  ["too long", { type: "object", description: "x".repeat(16_384) }, "is longer than 16384 characters of JSON"],
  ["too deep", nested(16), "is nested more than 16 schemas deep"],
  ["of too many", { type: "object", anyOf: Array(500).fill({}) }, "has more than 500 subschemas"],
  ["with NUL", { type: "object", title: "\0" }, "must not contain NUL"],
])("a schema %s is refused", (_, schema, fault) => {
  expect(findSchemaFault(schema)).toContain(fault);
});

const schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  required: ["price"],
  additionalProperties: false,
  properties: { price: { type: "number", minimum: 0 }, tags: { type: "array", items: { enum: ["a", "b"] } } },
};

test.each([
  ["missing", undefined, "result must be an object"],
  ["without a required property", {}, "result must have required property 'price'"],
  ["of another type", { price: "1" }, "result/price must be number"],
  ["with an unknown property", { price: 1, other: 2 }, 'result must NOT have additional properties: "other"'],
  ["with an invalid item", { price: 1, tags: ["a", "c"] }, "result/tags/1 must be equal to one of the allowed values"],
  ["with half a character", { price: 1, tags: ["\ud800"] }, "result must not contain NUL or an unpaired surrogate"],
  ["too long", { price: 1, tags: ["x".repeat(32_768)] }, "result is longer than 32768 characters"],
])("a result %s does not fit", (_, output, fault) => {
  expect(findSchemaFault(schema)).toBeUndefined();
  expect(findOutputFault(schema, output)).toBe(fault);
});

test("a result may have escapes as text, and be nested as deeply as a response allows", () => {
  expect(findOutputFault(schema, { price: 1.5, tags: ["a"] })).toBeUndefined();
  expect(findOutputFault({ type: "object" }, { source: String.raw`"\ud83d\ude00" or \u0000` })).toBeUndefined();
  const deep = (depth: number): JsonObject => (depth === 0 ? {} : { a: deep(depth - 1) });
  expect(findOutputFault({ type: "object" }, deep(23))).toBeUndefined();
  expect(findOutputFault({ type: "object" }, deep(24))).toBe("result is more than 24 levels deep");
});
