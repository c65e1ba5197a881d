import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { compileEncoder } from "../../gateway/rest/json-answer.ts";
import { ArchetypesSchema } from "../../src/gen/pilothouse/v1/archetype_pb.ts";
import type { Call } from "../../src/kernel/call.ts";
import { archetypeFeature } from "../../src/sessions/archetypes/feature.ts";

test("all unread responses of the archetype list share their bytes", async () => {
  const encode = compileEncoder(ArchetypesSchema);
  const list = archetypeFeature.create?.({}).served?.methods.find(({ name }) => name === "ArchetypeService.List");
  if (list?.kind !== "unary") throw new Error("expected the unary method ArchetypeService.List");
  const [first, second] = await Promise.all([1, 2].map(() => list.run({} as Call, create(list.method.input))));
  expect(first && encode(first)).toBe(second && encode(second));
  const other = create(ArchetypesSchema, { data: [{ name: "a" }] });
  const before = encode(other);
  other.data = [];
  expect(encode(other)).not.toEqual(before);
});
