import { create, getOption } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import {
  type FieldRules,
  FieldRulesSchema,
  field as fieldRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { beforeAll, describe, expect, it } from "vitest";
import {
  DriveRequestSchema,
  InteractRequestSchema,
  ObserveRequestSchema,
  TapSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { requirementOf } from "../../src/platform/rule-messages.ts";
import { ruleFaults } from "../../src/platform/validation.ts";
import { buildContracts, type Contract } from "../contract/contract-image.ts";

describe("the message for a violated rule", () => {
  let contract: Contract;

  beforeAll(async () => {
    contract = (await buildContracts())("pilothouse.v1");
  });

  it("has its own wording for every rule of the contract", () => {
    const said = contract.messages
      .flatMap(({ fields }) => fields)
      .flatMap((field) =>
        ruleIds(getOption(field, fieldRules)).map((id) => ({
          of: `${field} ${id}`,
          words: requirementOf(id, field) ?? "",
        })),
      );
    expect(said.length).toBeGreaterThan(300);
    expect(said.filter(({ words }) => !/^must (be|have|not have|look like) \S/.test(words))).toEqual([]);
    expect(said.filter(({ words }) => words.includes("undefined") || words.endsWith("like "))).toEqual([]);
  });

  it("names mutually exclusive and missing fields", () => {
    expect(ruleFaults(DriveRequestSchema, create(DriveRequestSchema, { id: "1" }))).toEqual([
      { field: "", message: "must have exactly one of navigate, interact, wait, capture, state, observe, read" },
    ]);
    expect(ruleFaults(TapSchema, create(TapSchema, { frame: ["a", ""], x: 1 }))).toEqual([
      { field: "frame[1]", message: "must have 1 to 2048 characters" },
      { field: "", message: "give either selector, or ref, or x and y" },
      { field: "frame", message: "needs a selector" },
    ]);
    expect(ruleFaults(ObserveRequestSchema, create(ObserveRequestSchema, { marks: true, offset: 1 }))).toEqual([
      { field: "marks", message: "needs screenshot: set screenshot to true, too" },
      { field: "offset", message: "needs ref, the reference of the element to read" },
    ]);
    expect(ruleFaults(ObserveRequestSchema, create(ObserveRequestSchema, { ref: "s1e1", find: "a" }))).toEqual([
      { field: "ref", message: "reads one element: leave out find, scope and screenshot" },
    ]);
    expect(
      ruleFaults(InteractRequestSchema, create(InteractRequestSchema, { observe: { marks: true } })),
    ).toContainEqual({ field: "observe.marks", message: "needs screenshot: set screenshot to true, too" });
  });
});

/** Returns the ids under which the validator reports a field's rules, except rules of items, keys and values. */
function ruleIds({ type }: FieldRules): string[] {
  const rules = FieldRulesSchema.fields.find(({ localName }) => localName === type.case)?.message;
  if (!rules || type.case === undefined) return [];
  const view = reflect(rules, type.value);
  return rules.fields
    .filter((rule) => view.isSet(rule) && !["items", "keys", "values"].includes(rule.name))
    .map((rule) => `${type.case}.${rule.name}`);
}
