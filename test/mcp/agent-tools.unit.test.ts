import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { describeTurn } from "../../gateway/mcp/agent-tools.ts";
import { TurnSchema, TurnStatus } from "../../src/gen/pilothouse/v1/agent_turn_pb.ts";

test.each([
  ["returns a short output", "x", { output: { value: "x" } }],
  [
    "names the endpoint of an output that is too long",
    "x".repeat(24_000),
    { next: expect.stringContaining("GET /v1/agent-sessions/agt_1/turns/trn_1") },
  ],
])("the description of a turn %s", (_, value, expected) => {
  const turn = create(TurnSchema, { turnId: "trn_1", status: TurnStatus.DONE, output: { value } });
  const { structured } = describeTurn("agt_1", turn);
  const { output, next } = structured;
  expect(JSON.parse(JSON.stringify({ output, next }))).toEqual(expected);
});
