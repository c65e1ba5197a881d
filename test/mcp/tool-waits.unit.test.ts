import { create, type DescMethodUnary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { runAgentTool } from "../../gateway/mcp/agent-tools.ts";
import { createMethodCalls } from "../../gateway/mcp/method-calls.ts";
import type { ToolContext } from "../../gateway/mcp/tool.ts";
import { createWaitTools } from "../../gateway/mcp/wait-tools.ts";
import type { Peer } from "../../gateway/peer.ts";
import type { TransportParts } from "../../gateway/transport-parts.ts";
import { AgentTurnService } from "../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import type { ServedService } from "../../src/kernel/registry.ts";

const { signal } = new AbortController();
const { askPersonTool, waitTool } = createWaitTools({ now: () => 1_000_000 });

/** Creates the context of a tool call. Records the requests of its method calls, and answers with empty messages. */
function recordCalls() {
  const requests: object[] = [];
  const call = async (method: DescMethodUnary, request: object) => {
    requests.push(request);
    return create(method.output);
  };
  // Cast: the test implements only the members that are used.
  return { requests, context: { call, closed: signal, signal } as unknown as ToolContext };
}

test("ask_person waits 10 minutes for a person unless the call sets 1 to 60 minutes", async () => {
  expect(askPersonTool.input.timeout_seconds).toMatchObject({ minimum: 60, maximum: 3_600 });
  const { requests, context } = recordCalls();
  const { structured } = await askPersonTool.run(context, { session_id: "ses_1", instructions: "Log in." });
  expect(requests.at(-1)).toMatchObject({ expiresInSeconds: 600 });
  expect(structured.handle).toBe("person/2/1600000");
});

test("run_agent waits 40 seconds, and wait 30 seconds unless the call sets up to 40", async () => {
  expect(waitTool.input.seconds).toMatchObject({ minimum: 1, maximum: 40 });
  const { requests, context } = recordCalls();
  await runAgentTool.run(context, { session_id: "ses_1", task: "Click." });
  expect(requests.at(-1)).toMatchObject({ waitMs: 40_000 });
  await waitTool.run(context, { session_id: "ses_1", handle: "agt_1/trn_1" });
  expect(requests.at(-1)).toMatchObject({ waitMs: 30_000 });
});

test("a method call of a tool has a deadline after the longest wait and before 60 seconds", async () => {
  const { getTurn } = AgentTurnService.method;
  const begun: { deadline: number; startedAt: number }[] = [];
  const dispatcher = { admit: async (call: (typeof begun)[number]) => begun.push(call), unary: async () => undefined };
  // Casts: the test implements only the members that are used.
  const services = [{ methods: [{ method: getTurn, name: "getTurn" }] }] as unknown as ServedService[];
  const callMethod = createMethodCalls(services, { dispatcher } as unknown as TransportParts);
  const peer: Peer = { requestId: "req_1", clientAddress: "", header: () => undefined, hasBearerInPath: false };
  await callMethod({ peer, buffer: undefined }, signal)(getTurn, {});
  const [{ deadline, startedAt }] = begun as [(typeof begun)[number]];
  expect(deadline - startedAt).toBeGreaterThan(40_000);
  expect(deadline - startedAt).toBeLessThan(60_000);
});
